# SPDX-License-Identifier: Apache-2.0
"""Real builds -> the pictures of the report in docs/pictures: `make pictures`.

Lua is built unchanged, and with an error in one of its sources; of bc, configure and make run.
Needs chromium, and the source packages of this release of Debian (tests/sources.py).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import sources
from browser import Page, browser

BIN = Path(sys.executable).parent
PICTURES = Path(__file__).resolve().parents[1] / "docs/pictures"
LUA, BC = ("make", "-j4", "linux"), ("sh", "-c", "./configure && make -j2")
OPEN_CONFIGURE = """(boxes => {
    const longest = boxes.sort((a, b) => b.commands.length - a.commands.length)[0].box;
    longest.open = true; longest.scrollIntoView();
    return new Promise(done => {
        const look = () => longest.querySelector(".body .row") ? done()
            : requestAnimationFrame(look);
        look();
    });
})([...etraceReport.phases])"""


def traced(folder: Path, package: str, command: tuple[str, ...], broken: str = "") -> Path:
    """Build a package under etrace; return the page of its report."""
    tree = sources.fetch(package, folder / "source")
    if broken:
        source = tree / broken
        source.write_text(source.read_text() + "\nint broken(void) { return undeclared; }\n")
    database = folder / "database"
    database.mkdir()
    subprocess.run([BIN / "etrace", "run", "-o", database, "--", *command], cwd=tree, check=False)
    for words in (["cas", "parse", ".nfsdb"], ["cas", "pp", "-q"], ["etrace", "report"]):
        subprocess.run([BIN / words[0], *words[1:]], cwd=database, check=True)
    return database / "build.html"


def take(page: Page, name: str) -> None:
    """Write what the browser shows."""
    page.settle()
    (PICTURES / f"{name}.png").write_bytes(page.picture())


def main() -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as folder, browser() as page:
        where = [Path(folder, name) for name in ("lua", "failed", "bc")]
        for each in where:
            each.mkdir()
        lua = traced(where[0], "lua5.4", LUA)
        failed = traced(where[1], "lua5.4", LUA, "src/lvm.c")
        bc = traced(where[2], "bc", BC)
        for name, is_dark, width in (
            ("light", False, 1280),
            ("dark", True, 1280),
            ("narrow", False, 390),
        ):
            page.open(lua, dark=is_dark, width=width)
            take(page, f"report-{name}")
        page.open(failed)
        take(page, "report-failed")
        page.open(bc)
        page.run(OPEN_CONFIGURE)
        take(page, "report-phases")


if __name__ == "__main__":
    main()
