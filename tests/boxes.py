# SPDX-License-Identifier: Apache-2.0
"""etrace-sandbox by itself, as root or an ordinary user, with namespaces or without."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SANDBOX = Path(sysconfig.get_path("platlib")) / "etrace/libexec/etrace-sandbox"
NOBODY = 65534


class Done(NamedTuple):
    """The report of the sandbox, and what the program printed."""

    report: str
    stdout: str
    stderr: str


def run(
    sandbox: Path,
    program: Path,
    words: Sequence[str],
    options: Sequence[str] = (),
    *,
    user: int | None = None,
    environment: bytes = b"PATH=/usr/bin:/bin\0",
    through: Sequence[str | Path] = (),
) -> Done:
    """Run a program in the sandbox; `user` starts the sandbox itself.

    With `through`, `sandbox` is a program that starts it, and these are its words.
    """
    with tempfile.TemporaryFile() as variables, program.open("rb") as file:
        variables.write(environment)
        variables.flush()
        reader, writer = os.pipe()
        fds = (file.fileno(), variables.fileno(), writer)
        done = subprocess.Popen(
            [sandbox, *through, "--program", str(fds[0]), "--environment", str(fds[1]), "--report",
             str(writer), *options, "--", program, *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            pass_fds=fds, user=user, group=user, extra_groups=None if user is None else [],
        )  # fmt: skip
        os.close(writer)
        stdout, stderr = done.communicate()
        with open(reader) as report:  # noqa: PTH123  a descriptor
            return Done(report.read().strip(), stdout, stderr)
