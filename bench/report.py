# SPDX-License-Identifier: Apache-2.0
"""`etrace report` on 10^5 processes: time to write, size, and time until the page is drawn.

The build is N copies of Lua's (scale.py), each in a directory of its own, so that names of files
and arguments differ. Needs chromium: build-aux/setup browser.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import scale

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "tests"))

from browser import Page, browser  # noqa: E402  found through the line above

GOLDEN = TOP / "tests/golden/lua.nfsdb.xz"
BIN = Path(sys.executable).parent
N_COPIES = 870
COPY_SHIFT = 32
ROUNDS = 3


def write_trace(target: Path, n_copies: int) -> None:
    """Write the trace of copies in directories of their own."""
    whole = target.with_name("whole")
    scale.scale(GOLDEN, n_copies, whole)
    with whole.open("rb") as lines, target.open("wb") as stream:
        stream.write(next(lines))
        for line in lines:
            copy = int(line.removeprefix(b"0: ").partition(b",")[0]) >> COPY_SHIFT
            stream.write(line.replace(b"lua-5.4.4", b"lua-%05d" % copy))
    whole.unlink()


def make_report(where: Path) -> tuple[float, int]:
    """Make the report of the trace in a directory; return CPU seconds and bytes."""
    for command in (["cas", "parse", ".nfsdb"], ["cas", "pp"]):
        subprocess.run([BIN / command[0], *command[1:]], cwd=where, check=True, capture_output=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([BIN / "etrace", "report"], cwd=where, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, (where / "build.html").stat().st_size


def until_drawn(page: Page, report: Path) -> float:
    """Return the seconds until the page is complete, the least of some rounds."""

    def once() -> float:
        page.open(report)
        return float(page.run("etraceReport.ready")) / 1000

    return min(once() for _ in range(ROUNDS))


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder, browser() as page:
        where = Path(folder)
        write_trace(where / ".nfsdb", N_COPIES)
        cpu, n_bytes = make_report(where)
        drawn = until_drawn(page, where / "build.html")
        n_commands = page.run("etraceReport.data.n")
    print(
        f"report of {n_commands:,} commands: {cpu:.1f} CPU seconds, {n_bytes / 1e6:.1f} MB, "
        f"drawn after {drawn:.2f} s"
    )


if __name__ == "__main__":
    main()
