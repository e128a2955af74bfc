# SPDX-License-Identifier: Apache-2.0
"""`etrace report` on 10^5 processes: time to write, size, time until the page is drawn, and frames
while it is scrolled.

The build is N copies of Lua's (samples.py), each in a directory of its own, so that names of files
and arguments differ. Needs chromium: build-aux/setup browser.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import paired
import samples

sys.path.insert(0, str(samples.TOP / "tests"))

from browser import Page, browser

N_COPIES = 870
ROUNDS = 3


def make_report(where: Path) -> tuple[float, int]:
    """Make the report of the trace in a directory; return CPU seconds and bytes."""
    for words in (["parse", ".nfsdb"], ["pp"]):
        subprocess.run([samples.CAS, *words], cwd=where, check=True, capture_output=True)
    run = paired.once(paired.Candidate("", [samples.PROGRAMS / "etrace", "report"], where))
    return run.cpu, (where / "build.html").stat().st_size


def until_drawn(page: Page, report: Path) -> float:
    """Return the seconds until the page is complete, the least of some rounds."""

    def once() -> float:
        page.open(report)
        return float(page.run("etraceReport.ready")) / 1000

    return min(once() for _ in range(ROUNDS))


#: scrolls an element from top to bottom in a number of frames -> ms of each frame
SCROLL = """(element, n) => new Promise(done => {
    const found = [], whole = element.scrollHeight - element.clientHeight;
    let last = performance.now();
    const step = now => {
        found.push(now - last); last = now;
        element.scrollTop = whole * found.length / n;
        found.length < n ? requestAnimationFrame(step) : done(found);
    };
    requestAnimationFrame(step);
})"""
#: zooms the timeline into its middle and back
ZOOM = """n => new Promise(done => {
    const found = [], timeline = etraceReport.timeline;
    let last = performance.now();
    const step = now => {
        found.push(now - last); last = now;
        timeline.zoom(found.length <= n / 2 ? .9 : 1 / .9);
        found.length < n ? requestAnimationFrame(step) : done(found);
    };
    requestAnimationFrame(step);
})"""
N_FRAMES = 120


def frames(page: Page, script: str) -> str:
    """Return the median and the 99th percentile of the frames of a movement, in ms."""
    found = sorted(page.run(script))
    return f"{found[len(found) // 2]:.0f} ms, 99 % below {found[int(len(found) * 0.99)]:.0f} ms"


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        samples.write_distinct(N_COPIES, where / ".nfsdb")
        cpu, n_bytes = make_report(where)  # it waits for all children: the browser comes later
        with browser() as page:
            drawn = until_drawn(page, where / "build.html")
            n_commands = page.run("etraceReport.data.n")
            moved = {
                "page": f"({SCROLL})(document.scrollingElement, {N_FRAMES})",
                "commands": f"({SCROLL})(document.querySelector('#commands .table'), {N_FRAMES})",
                "timeline, zoomed": f"({ZOOM})({N_FRAMES})",
            }
            lines = [f"frames of {name}: {frames(page, script)}" for name, script in moved.items()]
    print(
        f"report of {n_commands:,} commands: {cpu:.1f} CPU seconds, {n_bytes / 1e6:.1f} MB, "
        f"drawn after {drawn:.2f} s"
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
