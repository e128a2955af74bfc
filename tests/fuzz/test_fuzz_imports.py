# SPDX-License-Identifier: Apache-2.0
"""The fuzzer of importers finds nothing in a short run, and reports what it would find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from trying import amount

PROGRAM = Path(__file__).with_name("fuzz_imports.py")
#: a reader that dies of some inputs, and one that leaves a file when it refuses
DEFECTS = {
    "crash": "reader.read = lambda *_: 1 // 0",
    "stray": "reader.read = lambda *_: (open('OUT/out/stray', 'w'), refuse())",
}
WITH_DEFECT = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import fuzz_imports
from etrace.errors import EtraceError
from etrace.imports.access_trace import reader
def refuse():
    raise EtraceError("f:1: expected another line")
{defect}
sys.exit(fuzz_imports.main())
"""


def fuzz(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, timeout=1000
    )


@pytest.mark.slow
def test_a_short_run_finds_nothing(tmp_path: Path) -> None:
    runs = amount(100, 400)
    words = ["--runs", str(runs), "--seconds", "900", "--build", str(tmp_path / "b")]
    done = fuzz(str(PROGRAM), *words)
    assert done.returncode == 0, done.stderr
    opening = f"imports: {runs} crafted from seed 0, "
    assert done.stdout.startswith(opening)
    assert runs / 4 < int(done.stdout.removeprefix(opening).split()[0]) < runs * 7 / 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(DEFECTS))
def test_a_defect_ends_the_run_and_the_input_is_kept(kind: str, tmp_path: Path) -> None:
    program = WITH_DEFECT.format(defect=DEFECTS[kind].replace("OUT", str(tmp_path / "b")))
    options = ["--runs", "200", "--build", str(tmp_path / "b")]
    done = fuzz("-c", program, str(PROGRAM.parent), *options)
    assert done.returncode == 1
    assert done.stderr.endswith(f"fuzz: see {tmp_path}/b/in\n")
    assert ("ZeroDivisionError" if kind == "crash" else "stray") in done.stderr
    assert any((tmp_path / "b/in").iterdir())
