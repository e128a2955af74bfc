# SPDX-License-Identifier: Apache-2.0
"""Users of a root or machine, and one command of theirs with the end that it should have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

N_SHOWN = 200  # last lines of a step that failed
#: the last line of pytest and of its like
COUNTED = re.compile(r"^=+ .*\b\d+ (?:passed|failed|errors?)\b.* =+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class User:
    """A user who runs a command; users other than root are made in the roots that need them."""

    name: str
    number: int
    sudo: str = ""  # what /etc/sudoers.d says of this user; empty: no file

    @property
    def home(self) -> str:
        """Return the home folder, as the root shows it."""
        return "/root" if self.number == 0 else f"/home/{self.name}"


ROOT = User("root", 0)


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a user's; `says` are patterns of its output, in any order."""

    name: str
    command: str
    user: User = ROOT
    status: int = 0
    says: tuple[str, ...] = ()

    def report(self, where: str, status: int, log: Path, seconds: float) -> bool:
        """Print how the step ended, with the end of its log when it failed; return if it passed."""
        text = log.read_text(errors="replace")
        unsaid = [pattern for pattern in self.says if not re.search(pattern, text, re.MULTILINE)]
        passed = status == self.status and not unsaid
        lines = [
            f"{'passed' if passed else 'FAILED'}  {where}: {self.name} ({seconds:.0f} s)",
            *("        " + line.strip("= ") for line in COUNTED.findall(text)),
        ]
        if not passed:
            lines += text.splitlines()[-N_SHOWN:]
            lines += [f"status {status}, wanted {self.status}; not said: {unsaid}; log: {log}"]
        print("\n".join(lines), flush=True)
        return passed
