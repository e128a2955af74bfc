# SPDX-License-Identifier: Apache-2.0
"""The fuzzer of images reports a question that never ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys, threading
sys.path.insert(0, sys.argv.pop(1))
import fuzz_images
from fuzz import crafted
crafted.ANSWER_SECONDS = 1
fuzz_images.load = lambda path: threading.Event().wait(60)
sys.exit(fuzz_images.main())
"""


def test_a_question_without_an_answer_ends_the_run(tmp_path: Path) -> None:
    options = ["--runs", "1", "--build", str(tmp_path / "out")]
    command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    image = tmp_path / "out/a/b/x.img"
    assert done.stderr.endswith(f"Hung: no answer in 1 s: libetrace\nfuzz: see {image}\n")
    assert image.exists()
