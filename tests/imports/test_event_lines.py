# SPDX-License-Identifier: Apache-2.0
"""The writer of event lines for importers prints what the oracle of the C formatter prints."""

from __future__ import annotations

import io
from collections.abc import Callable

import event_lines as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from etrace.imports.event_lines import EventLines

TEXTS = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"a\nb", b"\n", b"x" * 899, b"x" * 900, b"y\n" * 500, b"z" * 1900 + b"\n"]),
)
U32, S32 = st.integers(0, 2**32 - 1), st.integers(-(2**31), 2**31 - 1)


def written(fill: Callable[[EventLines], None]) -> bytes:
    stream = io.BytesIO()
    lines = EventLines(stream, b"/d\ne")
    fill(lines)
    lines.flush()
    first, _, rest = stream.getvalue().partition(b"\n")
    assert first == b"INITCWD=/d\\012e"
    assert lines.n_bytes == len(stream.getvalue())
    return rest


@settings(deadline=None)
@given(TEXTS, TEXTS, U32, U32, S32)
def test_an_open(resolved: bytes, original: bytes, flags: int, mode: int, fd: int) -> None:
    head = oracle.prefix(7, 0, 5_000_000_003)
    values: dict[str, oracle.Value] = {
        "flags": flags,
        "mode": mode,
        "fd": fd,
        "FN": resolved,
        "FO": original,
    }
    assert written(
        lambda out: out.put(7, 5_000_000_003, "Open", (flags, mode, fd), (resolved, original))
    ) == oracle.event_lines(head, "Open", values)


@settings(deadline=None)
@given(TEXTS, TEXTS, TEXTS, st.lists(TEXTS, max_size=4))
def test_an_execution(interpreter: bytes, program: bytes, cwd: bytes, argv: list[bytes]) -> None:
    head = oracle.prefix(9, 0, 1)
    values: dict[str, oracle.Value] = {"PI": interpreter, "PP": program, "CW": cwd}
    assert written(
        lambda out: out.execution(9, 1, (interpreter, program, cwd), argv)
    ) == oracle.exec_lines(head, values, argv)


@settings(deadline=None)
@given(TEXTS, st.none() | TEXTS, TEXTS)
def test_a_string_that_is_absent(target: bytes, resolved: bytes | None, link: bytes) -> None:
    values: dict[str, oracle.Value] = {"ST": target, "SR": resolved, "SL": link}
    assert written(
        lambda out: out.put(3, 2, "Symlink", (), (target, resolved, link))
    ) == oracle.event_lines(oracle.prefix(3, 0, 2), "Symlink", values)


@settings(deadline=None)
@given(TEXTS)
def test_a_variable_of_two_processes(variable: bytes) -> None:
    head = oracle.prefix(0, 0, 2)
    wanted = head + b"UPID|3\n" + head + b"UPID|4\n" + oracle.env_lines(head, variable)
    assert written(lambda out: out.variable((3, 4), 2, variable)) == wanted
