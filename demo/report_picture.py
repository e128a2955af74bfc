# SPDX-License-Identifier: Apache-2.0
"""Take the pictures of docs/seeing-a-build.md from the demo's build: docs/pictures/report-*.png.

Run it as `python demo/report_picture.py` after `make demo` and `build-aux/setup browser`. It looks
at the page in a headless chromium, light and dark, and at that of a build that fails.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests"))

from browser import Page, browser  # noqa: E402  found through the line above

PICTURES = TOP / "docs" / "pictures"
BIN = Path(sys.executable).parent
WIDTH, HEIGHT = 1180, 1000
#: a Makefile whose second command fails
FAILING = """all: one.o two.o
%.o: %.c
\tcc -c -o $@ $<
"""


def take(page: Page, report: Path, name: str, *, dark: bool, height: int = HEIGHT) -> None:
    """Write one picture."""
    page.open(report, dark=dark, width=WIDTH, height=height)
    (PICTURES / f"report-{name}.png").write_bytes(page.picture())


def failed_report(where: Path) -> Path:
    """Trace a build that fails; return its report."""
    where.mkdir()
    (where / "Makefile").write_text(FAILING)
    (where / "one.c").write_text("#include <stdio.h>\nint one(void) { return EOF; }\n")
    (where / "two.c").write_text("#include <stdlib.h>\nint two(void) { return three; }\n")
    subprocess.run([BIN / "etrace", "run", "-q", "--env", "--", "make"], cwd=where, check=False)
    for command in (("cas", "parse"), ("cas", "pp"), ("etrace", "report")):
        subprocess.run([BIN / command[0], *command[1:]], cwd=where, check=True)
    return where / "build.html"


def main() -> int:
    """Take all pictures."""
    (tree,) = sorted((TOP / "build" / "demo").glob("lua*"))
    with browser() as page, tempfile.TemporaryDirectory() as folder:
        take(page, tree / "build.html", "light", dark=False)
        take(page, tree / "build.html", "dark", dark=True)
        take(page, failed_report(Path(folder, "failing")), "failed", dark=False, height=760)
    return 0


if __name__ == "__main__":
    sys.exit(main())
