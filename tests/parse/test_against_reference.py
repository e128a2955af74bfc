# SPDX-License-Identifier: Apache-2.0
"""etrace_parser against the slow reference parser, on generated traces and on every sample.

Whole files are compared: the entries byte for byte, environment and mounts as values, and whether
there was anything to report. Samples are parsed on one thread, on two, and in tiny chunks; each of
the many traces that are generated or cut is parsed in one of these ways.
"""

from __future__ import annotations

import lzma
import os
import tempfile
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import event_streams
import pytest
from databases import GOLDEN
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parse.parsing import WAYS, WHOLE, Products, Way, parse, parse_by_reference
from trying import amount

SEEDS = Path(__file__).parents[1] / "fuzz" / "corpus" / "parser"
CONT_END_WITH_MORE = b"""\
4194304,0,5,1000!SchedFork|pid=50331648
0,0,5,0!UPID|4194304
0,0,5,0!Env[0]
0,0,5,0!Cont|
0,0,5,0!Cont_end|,
"""
LOST_BEFORE_THE_FIRST_LINE = [b"CPU:1 [LOST 5 EVENTS]\n1,0,1,0!Exit|status=0\n", b"INITCWD=/w\n"]
ITS_OWN_THREAD = b"1,0,1,0!SysClone|flags=65536\n1,0,1,0!SchedFork|pid=1\n"
DAMAGED = [
    [b""], [b"INITCWD=/"], [b"\n"], [b"", b"INITCWD=/w\n", b""], [CONT_END_WITH_MORE],
    LOST_BEFORE_THE_FIRST_LINE, [ITS_OWN_THREAD],
]  # fmt: skip
A_WAY = st.sampled_from(WAYS)
THOROUGH = settings(
    max_examples=amount(150, 400),
    deadline=None,
    derandomize="CI" in os.environ,  # new examples are for people, a red CI is for changes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check(inputs: list[bytes], ways: Sequence[Way] = WAYS) -> None:
    """Compare ways to parse with the reference."""
    expected = parse_by_reference(inputs)
    with tempfile.TemporaryDirectory() as directory:
        for way in ways:
            assert shown(parse(inputs, Path(directory), way)) == shown(expected), way


def shown(products: Products) -> list[object]:
    """Return products entry by entry, so that a difference prints short."""
    lines = products.raw.split(b"\n")
    return [*lines, list(products.env.items()), products.mounts, products.has_problems]


@pytest.mark.slow
@THOROUGH
@given(event_streams.inputs(), A_WAY)
def test_whole_traces_give_the_same(inputs: list[bytes], way: Way) -> None:
    check(inputs, [way])


@pytest.mark.slow
@THOROUGH
@given(event_streams.inputs(event_streams.OUT_OF_ORDER), A_WAY)
def test_traces_with_stamps_out_of_order_give_the_same(inputs: list[bytes], way: Way) -> None:
    check(inputs, [way])


@settings(THOROUGH, max_examples=50)
@given(event_streams.damaged())
def test_the_command_gives_the_same_as_the_native_parser(inputs: list[bytes]) -> None:
    check(inputs, [WHOLE])


@pytest.mark.slow
@THOROUGH
@given(event_streams.damaged(), A_WAY)
def test_damaged_traces_give_the_same(inputs: list[bytes], way: Way) -> None:
    check(inputs, [way])


@pytest.mark.parametrize("inputs", DAMAGED)
def test_known_damage_gives_the_same(inputs: list[bytes]) -> None:
    check(inputs)


@pytest.mark.parametrize("path", sorted(SEEDS.iterdir()), ids=lambda path: path.name)
def test_a_trace_cut_at_any_byte_gives_the_same(path: Path) -> None:
    trace = path.read_bytes()
    for size, way in zip(range(0, len(trace) + 1, max(1, len(trace) // 150)), cycle(WAYS)):
        check([trace[:size]], [way])


@pytest.mark.parametrize("path", sorted(SEEDS.iterdir()), ids=lambda path: path.name)
def test_a_trace_without_any_one_line_gives_the_same(path: Path) -> None:
    lines = path.read_bytes().split(b"\n")
    for at, way in zip(range(len(lines)), cycle(WAYS)):
        check([b"\n".join(lines[:at] + lines[at + 1 :])], [way])


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.nfsdb.xz")), ids=lambda path: path.name)
def test_every_sample_gives_the_same(path: Path) -> None:
    trace = lzma.decompress(path.read_bytes())
    check([trace])
    check([trace[: len(trace) * 2 // 3]])


def test_a_sample_in_parts_of_each_cpu_gives_the_same() -> None:
    lines = lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes()).splitlines(keepends=True)[1:]
    parts: dict[bytes, list[bytes]] = {}
    for line in lines:
        parts.setdefault(line.split(b",")[1], []).append(line)
    check([b"".join(part) for _, part in sorted(parts.items())])
