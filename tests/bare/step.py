# SPDX-License-Identifier: Apache-2.0
"""Users of a root or machine, and one command of theirs with the end that it should have."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

N_SHOWN = 200  # last lines of a step that failed
N_OF_CAUSE = 60  # last lines in which the cause of a failure is looked for
#: what commands print when a disk, an archive or the network fails, not the tree
OF_MACHINE = re.compile(
    r"No space left on device|Input/output error|Cannot allocate memory|"
    r"Temporary failure|Could not resolve|Connection (?:timed out|reset|refused|broken)|"
    r"Read timed out|Hash Sum mismatch|Failed to fetch|Unable to fetch|HTTP Error 5\d\d|"
    r"package lists could not be refreshed|could not install |could not be installed|"
    r"dpkg: (?:error|unrecoverable)|npm (?:ERR!|error) (?:network|code E)"
)
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
    """A command of a user's; `says` are patterns of its output, in any order.

    `again` runs only the tests that failed in `command`, which leaves a record of them; empty when
    `command` runs no tests.
    """

    name: str
    command: str
    user: User = ROOT
    status: int = 0
    says: tuple[str, ...] = ()
    again: str = ""

    def second_try(self, log: Path) -> Step | None:
        """Return what to run once more after a failure, or nothing: the failure counts.

        After failed tests, only those run again. Any other step runs again as a whole when the
        end of its log shows that the machine failed.
        """
        text = log.read_text(errors="replace")
        if self.again and COUNTED.search(text):
            name = f"{self.name}, what failed, alone"
            return replace(self, name=name, command=self.again, again="")
        if OF_MACHINE.search("\n".join(text.splitlines()[-N_OF_CAUSE:])):
            return replace(self, name=f"{self.name}, once more after a fault of the machine")
        return None

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
