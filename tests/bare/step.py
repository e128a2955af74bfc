# SPDX-License-Identifier: Apache-2.0
"""Users of a root or machine, and steps: a command of a user with its expected result."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

N_SHOWN = 200  # last lines of a step that failed
N_OF_CAUSE = 60  # last lines in which the cause of a failure is looked for
#: errors of disk, memory, archives and the network: not of this project
OF_MACHINE = re.compile(
    r"No space left on device|Disk quota exceeded|Cannot allocate memory|ENOSPC|"
    r"Temporary failure (?:in name resolution|resolving)|Could not resolve|"
    r"Name or service not known|Network is unreachable|No route to host|EAI_AGAIN|"
    r"Connection timed out|Connection reset by peer|ETIMEDOUT|ECONNRESET|"
    r"[Rr]ead (?:operation )?timed out|urlopen error timed out|ReadTimeoutError|ConnectTimeout|"
    r"Max retries exceeded|RemoteDisconnected|IncompleteRead|Failed to fetch|Hash Sum mismatch|"
    r"DO NOT MATCH THE HASHES|HTTP [Ee]rror (?:429|5\d\d)|50[234] +(?:Bad Gateway|Service Unav)"
)
#: the summary line of pytest
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

    def second_try(self, log: Path, *, has_failed_tests: bool) -> Step | None:
        """Return what to run once more after a failure, or nothing: the failure counts.

        After failed tests, only those run again. Any other step runs again as a whole when the
        end of its log shows that the machine failed.
        """
        if self.again and has_failed_tests:
            return replace(self, name=f"{self.name}: failed tests", command=self.again, again="")
        if OF_MACHINE.search("\n".join(last_lines(log, N_OF_CAUSE))):
            return self
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
            lines += last_lines(log, N_SHOWN)
            lines += [f"status {status}, wanted {self.status}; not said: {unsaid}; log: {log}"]
        print("\n".join(lines), flush=True)
        return passed


def last_lines(log: Path, n: int) -> list[str]:
    """Return the last `n` lines of a log."""
    return log.read_text(errors="replace").splitlines()[-n:]
