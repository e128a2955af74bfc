# SPDX-License-Identifier: Apache-2.0
"""Build etrace and install it beside this Python: `build-aux/build.py FOLDER [SETUP_ARG]...`.

pip runs meson-python, which runs Meson and Ninja. What they print goes to FOLDER.log; here appear
the steps with their time, every warning, and the end of the log when a step fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, TextIO

CONFIGURE, COMPILE, INSTALL = "configure", "translate and compile", "install"
#: a line of the log -> the step that it begins; pip and its children print no better mark
BEGINS = (
    (re.compile(r"  \+ \S*ninja\b"), COMPILE),
    (re.compile(r"Building wheels? for"), INSTALL),
)
COUNT = re.compile(r"  \[(\d+/\d+)\] (?!/)")  # Ninja's; that of the files of a wheel names a path
WARNING = re.compile(r"  .*\bwarning: ", re.IGNORECASE)  # pip's own have no indentation
TAIL = 60


class Steps:
    """The steps on standard output: a line each, which on a terminal counts while it runs."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.name = ""
        self.count = ""
        self.since = time.monotonic()

    def begin(self, name: str) -> None:
        """End the step before, and begin one."""
        self.end()
        self.name, self.count, self.since = name, "", time.monotonic()
        print(f"build: {name} ...", end="", file=self.stream, flush=True)

    def counts(self, count: str) -> None:
        """Show how far Ninja is, on a terminal."""
        self.count = count.partition("/")[2]
        if self.stream.isatty():
            done = f"{count.replace('/', ' of ')}, {self._seconds()}"
            print(f"\rbuild: {self.name} ... {done}\x1b[K", end="", file=self.stream, flush=True)

    def end(self, status: str = "") -> None:
        """Complete the line of a step with its time."""
        if self.name:
            start = f"\rbuild: {self.name} ..." if self.stream.isatty() else ""
            steps = f", {self.count} steps" if self.count else ""
            end = "\x1b[K\n" if start else "\n"
            print(
                f"{start} {status}{self._seconds()}{steps}", end=end, file=self.stream, flush=True
            )
        self.name = ""

    def _seconds(self) -> str:
        return f"{time.monotonic() - self.since:.0f} s"


def follow(lines: IO[str], log: TextIO, steps: Steps) -> list[str]:
    """Copy the lines to the log and show the steps; return the warnings."""
    warnings = []
    steps.begin(CONFIGURE)
    for line in lines:
        log.write(line)
        for begins, step in BEGINS:
            if begins.match(line) and steps.name not in (step, INSTALL):
                steps.begin(step)
        if steps.name == COMPILE and (counted := COUNT.match(line)):
            steps.counts(counted[1])
        if WARNING.match(line):
            warnings.append(line.strip())
    return warnings


def main(folder: str, setup_args: list[str]) -> int:
    """Run pip; return its status."""
    log = Path(f"{folder}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable, "-m", "pip", "install", "-v", "--disable-pip-version-check",
        "--root-user-action=ignore", "--no-build-isolation", f"-Cbuild-dir={folder}",
        *(f"-Csetup-args={each}" for each in setup_args), ".",
    ]  # fmt: skip
    # named compilers: Meson would put any sccache before them, whose server may be of another root
    environment = {"CC": "cc", "CXX": "c++"} | os.environ | {"PYTHONUNBUFFERED": "1"}
    steps = Steps(sys.stdout)
    with log.open("w") as out, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        env=environment,
    ) as pip:  # fmt: skip
        assert pip.stdout is not None
        warnings = follow(pip.stdout, out, steps)
    steps.end("failed after " if pip.returncode else "")
    print("".join(f"build: {each}\n" for each in dict.fromkeys(warnings)), end="")
    if pip.returncode:
        said = log.read_text(errors="replace").splitlines()
        failed = (n for n, line in enumerate(said) if line.startswith("  FAILED: "))
        print("\n".join(said[next(failed, max(len(said) - TAIL, 0)) :][:TAIL]), file=sys.stderr)
        print(f"build: failed; the whole log: {log}", file=sys.stderr)
    return pip.returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)
