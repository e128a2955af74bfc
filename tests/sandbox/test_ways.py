# SPDX-License-Identifier: Apache-2.0
"""No way in which a makefile, words, variables or a database make a program run or change a thing.

ways.py has them all; it runs in the guest, too (tests/vm).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import boxes
import pytest
from backends import need_root
from traced_builds import BIN

WAYS = Path(__file__).with_name("ways.py")
#: an ordinary user, who may read where this Python is
AS_NOBODY = [
    "setpriv", f"--reuid={boxes.NOBODY}", f"--regid={boxes.NOBODY}", "--clear-groups",
    "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
]  # fmt: skip
#: that change nothing even where nothing stops them, here: no Guile, no argv of perl
MOST_IDLE = 8


@pytest.mark.root
@pytest.mark.parametrize("before", [[], AS_NOBODY], ids=["root", "user"])
def test_nothing_runs_and_nothing_changes(open_folder: Path, before: list[str]) -> None:
    need_root()
    top = open_folder / "top"
    top.mkdir()
    if before:
        os.chown(top, boxes.NOBODY, boxes.NOBODY)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        [*before, sys.executable, WAYS, BIN, top],
        env={**environment, "XDG_STATE_HOME": str(top / "state"), "HOME": str(top)},
        capture_output=True, text=True, check=False, umask=0o022,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1].split()
    n_ways, n_holes, n_idle = int(last[0]), int(last[2]), int(last[4])
    assert n_ways > 140, done.stdout
    assert n_holes == 0
    assert n_idle <= MOST_IDLE, done.stdout
    for title in ("check", "--run-shell", "--trust", "asked", "confirmed"):
        assert f"{title}: status " in done.stdout
