# SPDX-License-Identifier: Apache-2.0
"""build-aux/build.py and the Makefile: what a build says, and what `make clean` leaves."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import build

TOP = Path(__file__).resolve().parents[2]
#: of a real build: pip -v, meson-python, Meson, Ninja
LOG = """\
Processing ./.
  Running command Preparing metadata (pyproject.toml)
  + meson setup /work /work/build/release -Dbuildtype=release
  ../completions/meson.build:10: WARNING: Project targets '>=1.0.1' but uses a deprecated feature
  + /work/.venv/bin/ninja
  [1/2] Generating cython/libetrace/libetrace-c with a custom command
  a.c:3474:15: warning: assignment discards 'const' qualifier [-Wdiscarded-qualifiers]
  [2/2] Linking target cython/libetrace/parser.so
  [1/555] /work/build/release/native/ptrace/etrace-ptrace
Building wheels for collected packages: etrace
WARNING: Location 'file:///opt/pypi' is ignored
Successfully installed etrace-0.1.0
"""


def test_a_build_shows_its_steps_with_their_time_and_every_warning() -> None:
    shown, kept = io.StringIO(), io.StringIO()
    steps = build.Steps(shown)
    warnings = build.follow(io.StringIO(LOG), kept, steps)
    steps.end()
    assert shown.getvalue() == (
        "build: configure ... 0 s\nbuild: translate and compile ... 0 s, 2 steps\n"
        "build: install ... 0 s\n"
    )
    assert [warning.partition(":")[0] for warning in warnings] == [
        "../completions/meson.build",
        "a.c",
    ]
    assert kept.getvalue() == LOG


def make(top: Path, *words: str) -> str:
    return subprocess.run(
        ["make", "--no-print-directory", *words],
        cwd=top,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_help_lists_every_target_that_says_what_it_does() -> None:
    declared = {
        line.partition(":")[0]
        for line in (TOP / "Makefile").read_text().splitlines()
        if ": " in line and " ## " in line
    }
    assert {line.split()[0] for line in make(TOP, "help").splitlines()} == declared
    assert "test-arm64" in declared


def test_clean_leaves_only_the_sources(tmp_path: Path) -> None:
    shutil.copy(TOP / "Makefile", tmp_path)
    sources = [tmp_path / "Makefile", tmp_path / "etrace/__init__.py", tmp_path / "kmod/src/a.c"]
    made = (
        "build/release/build.ninja", ".venv/bin/python", ".mypy_cache/a", ".ruff_cache/a",
        ".import_linter_cache/a", ".pytest_cache/a", ".hypothesis/a", "dist/a.whl",
        "etrace/__pycache__/a.pyc", "tests/deep/__pycache__/a.pyc", "kmod/src/a.o",
        "kmod/etrace.ko", "kmod/src/.a.o.cmd", "kmod/Module.symvers",
    )  # fmt: skip
    for path in (*sources[1:], *(tmp_path / name for name in made)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    make(tmp_path, "clean")
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(sources)
