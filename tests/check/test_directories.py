# SPDX-License-Identifier: Apache-2.0
"""Which line of a recipe a command can be, where variables are not known."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from traced_builds import found, trace

from etrace.check import directories
from etrace.check.directories import _can_be


@pytest.mark.parametrize(
    ("line", "text", "expected"),
    [
        ("@mkdir -p $(OBJ)", "mkdir -p obj", True),
        ("@mkdir -p $(OBJ)", "mkdir obj", False),
        ("-$(MKDIR) '$(D)/sub' $$x", 'mkdir "out/sub" $x', True),
        ("mkdir obj", "mkdir obj", True),
        ("mkdir obj", "mkdir objs", False),
        ("$(A)b$(C)b", "xb", False),
        ("$(A)b$(C)b", "xbb", True),
        ("mkdir $(if $(x),a,b)", "mkdir a", True),
    ],
)
def test_a_variable_may_be_any_text(line: str, text: str, expected: bool) -> None:
    assert _can_be(line, text) is expected


def test_many_variables_take_no_time() -> None:
    begin = time.process_time()
    assert not _can_be("$(A)x" * 100 + "!", "x" * 100_000)
    assert time.process_time() - begin < 5  # tried one after another, they would take forever


def test_equal_lines_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand rules of one pattern took the square of a thousand."""
    names = [f"o{i}" for i in range(30)]
    makefile = f"all: {' '.join(names)}\n{' '.join(names)}:\n\t@mkdir -p out\n\techo > out/$@\n"
    tree = trace(tmp_path, "make -B", {"Makefile": makefile})
    asked: list[tuple[str, str]] = []
    real = _can_be

    def counted(line: str, text: str) -> bool:
        asked.append((line, text))
        return real(line, text)

    monkeypatch.setattr(directories, "_can_be", counted)
    found(tree)
    assert len(asked) == len(set(asked))
