# SPDX-License-Identifier: Apache-2.0
"""docs/security.md names every file that starts a program."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
PYTHON = re.compile(
    r"subprocess\.(?:run|Popen|check)|create_subprocess|os\.(?:exec|posix_spawn|system|popen)|"
    r"multiprocessing|ProcessPool"
)
C = re.compile(
    r"\b(?:execv|execvp|execve|posix_spawn|system|popen|CreateProcess[AW]?)\(|SYS_execve"
)
#: speak of the calls: they read, deny or count them
SPEAK = {
    "native/bpf/execution.c", "native/capture/program.h", "native/capture/unrunnable.h",
    "native/preload/collector/build.c", "native/preload/library/calls.h",
    "native/ptrace/session/command.c", "native/ptrace/task/filter.c",
    "native/ptrace/event/exec.c", "native/ptrace/event/process.c",
    "native/sandbox/answer.c", "native/sandbox/filter.c", "native/sandbox/user.c",
    "native/windows/text/spec.c",
    "etrace/cli/serve/worker.py",
}  # fmt: skip


def test_every_file_that_runs_a_program_is_listed() -> None:
    text = (TOP / "docs/security.md").read_text()
    table = text.partition("## Everything that runs a program")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`((?:etrace|native)/[\w/.]+\.(?:py|c))`", table))
    found = set()
    for root, suffixes, pattern in (("etrace", {".py"}, PYTHON), ("native", {".c", ".h"}, C)):
        for path in (TOP / root).rglob("*"):
            if path.suffix in suffixes and pattern.search(path.read_text()):
                found.add(str(path.relative_to(TOP)))
    assert found - SPEAK - listed == set()
    assert {name for name in listed if not (TOP / name).is_file()} == set()
