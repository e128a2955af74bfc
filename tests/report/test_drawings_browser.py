# SPDX-License-Identifier: Apache-2.0
"""The timeline and the flame graph of the page in a browser: widths, colours and zoom."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Page
from builders import TraceBuilder
from databases import database_of
from timing.builds import US, two_jobs_with_usage

from etrace.cli.main import cas, etrace

pytestmark = pytest.mark.xdist_group("browser")
R = "etraceReport"
FRAMES = (
    f"(r => [r.total, ...[...r.below.values()].flatMap(m => [[m.name, m.total],"
    f" ...[...m.below.values()].map(f => [f.name, f.total])])])({R}.flame.root)"
)


def open_report(page: Page, folder: Path, trace: bytes) -> None:
    """Open the report of a made build after `cas pp`."""
    database_of(folder, trace)
    assert cas(["pp", "-q", "--dbdir", str(folder)]) == 0
    assert etrace(["report", "-o", str(folder / "b.html"), str(folder)]) == 0
    page.messages.clear()
    page.open(folder / "b.html")


def choose(page: Page, box: str, value: str) -> None:
    """Choose a value in a list of choices, as a person does."""
    page.run(
        f"(box => {{ box.value = '{value}'; box.dispatchEvent(new Event('change')); }})"
        f"([...document.querySelectorAll('{box}')].at(0))"
    )
    page.settle()


def test_a_drag_zooms_and_a_key_shows_all_again(shown: Page) -> None:
    box = shown.run(
        "(b => [b.left, b.top, b.width])(document.querySelector('#timeline canvas')"
        ".getBoundingClientRect())"
    )
    left, top, width = box
    shown.click(left + width / 4, top + 10, left + width / 2)
    end = shown.run(f"{R}.data.end")
    span = f"[{R}.timeline.from, {R}.timeline.to]"
    assert shown.run(span) == pytest.approx([end / 4, end / 2], rel=0.01)
    shown.run("document.querySelector('#timeline canvas').focus()")
    shown.key("0")
    assert shown.run(span) == [0, end]
    shown.key("+")
    assert shown.run(span) == pytest.approx([end / 4, end * 3 / 4])


def test_commands_are_coloured_by_target(page: Page, tmp_path: Path) -> None:
    make, cc, sub, ld = (n << 22 | n for n in range(1, 5))
    goal = "</script><b>all</b>"
    trace = TraceBuilder(cwd="/src").exec(make, "/usr/bin/make", ["make", goal])
    trace.fork(make, cc).exec(cc, "/usr/bin/cc", ["cc"]).exit(cc)
    trace.fork(make, sub).exec(sub, "/usr/bin/make", ["make", "-C", "lib", "install"])
    trace.fork(sub, ld).exec(ld, "/usr/bin/ld", ["ld"]).exit(ld).exit(sub).exit(make)
    open_report(page, tmp_path, trace.trace())
    choose(page, "#timeline select", "target")
    shown = page.run(f"{R}.timeline.colours.shown.map(each => each[0])")
    assert sorted(shown) == sorted(["not known", goal, "install"])
    heads = "[...document.querySelectorAll('#commands [role=columnheader]')]"
    assert any("target" in head for head in page.run(f"{heads}.map(h => h.textContent)"))
    targets = f"[...{R}.data.target].map(t => {R}.data.text(t))"
    assert page.run(targets) == ["", goal, goal, "install"]
    assert page.messages == []


def test_a_build_without_targets_has_no_such_colour(page: Page, tmp_path: Path) -> None:
    trace = TraceBuilder(cwd="/src").exec(1 << 22 | 1, "/usr/bin/cc", ["cc"]).exit(1 << 22 | 1)
    open_report(page, tmp_path, trace.trace())
    assert "target" not in page.run(f"Object.keys({R}.timeline.choices())")


def test_commands_at_once_are_counted_from_their_times(page: Page, tmp_path: Path) -> None:
    make, *jobs = (n << 22 | n for n in range(1, 12))
    trace = TraceBuilder(cwd="/src").exec(make, "/usr/bin/make", ["make"])
    for each in jobs:  # one after the other: in one column of pixels there are several
        trace.fork(make, each).exec(each, "/usr/bin/cc", ["cc"]).exit(each)
    first, second = (n << 22 | n for n in (20, 21))
    for each in (first, second):
        trace.fork(make, each).exec(each, "/usr/bin/cc", ["cc"])
    open_report(page, tmp_path, trace.exit(first).exit(second).exit(make).trace())
    assert page.run(f"{R}.timeline.mostAtOnce()") == 2
    page.run(f"{R}.timeline.show(0, {R}.data.end / 4)")
    assert page.run(f"{R}.timeline.mostAtOnce()") == 1
    assert page.run("document.querySelector('#timeline .spoken caption').textContent").endswith(
        "at most 2 ran at once"
    )


def test_a_program_has_one_colour_and_a_failed_command_is_red(page: Page, tmp_path: Path) -> None:
    make, good, bad = (n << 22 | n for n in (1, 2, 3))
    trace = TraceBuilder(cwd="/src").exec(make, "/usr/bin/make", ["make"])
    trace.fork(make, good).exec(good, "/usr/bin/cc", ["cc", "a.c"]).exit(good)
    trace.fork(make, bad).exec(bad, "/usr/bin/cc", ["cc", "b.c"]).exit(bad, 1).exit(make)
    open_report(page, tmp_path, trace.trace())
    for name in page.run(f"Object.keys({R}.timeline.choices())"):
        choose(page, "#timeline select", name)
        red, other = page.run(f"[{R}.timeline.fill(2), {R}.timeline.fill(1)]")
        shown = page.run("document.querySelector('#timeline .legend').textContent")
        assert red == "#ff6b5e" != other, name
        assert "status other than 0" in shown
    choose(page, "#timeline select", "program")
    painted = page.run(
        f"(f => {{ const seen = []; f.draw(new Proxy({{ measureText: () => ({{ width: 0 }}) }}, {{"
        " get: (t, k) => k === 'fillRect' ? () => seen.push(t.fillStyle) : t[k] ?? (() => {}) }),"
        f" f.surface.width); return seen; }})({R}.flame)"
    )
    assert page.run(f"{R}.timeline.fill(1)") in painted


def test_only_wide_commands_that_started_no_other_are_outlined(shown: Page) -> None:
    marked = f"[...{R}.data.critical.keys()].filter(i => {R}.data.critical[i])"
    parents = f"{marked}.filter(i => {R}.data.children(i).length)"
    assert shown.run(f"{parents}.length") >= 2
    assert not shown.run(f"{parents}.some(i => {R}.timeline.isOutlined(i, 1000))")
    leaves = f"{marked}.filter(i => !{R}.data.children(i).length)"
    assert shown.run(f"{leaves}.every(i => {R}.timeline.isOutlined(i, 4))")
    assert not shown.run(f"{leaves}.some(i => {R}.timeline.isOutlined(i, 3))")
    assert shown.run(f"{R}.timeline.path") == shown.run(leaves)


def test_frames_of_the_flame_graph_add_up(shown: Page) -> None:
    shown.run(f"globalThis.top1 = {R}.flame.root")
    below = shown.run("[...top1.below.values()].reduce((s, f) => s + f.total, 0)")
    assert below == pytest.approx(shown.run("top1.total"))
    # a command without children counts whole, wherever it is
    leaves = shown.run(
        f"(d => [...d.elapsed].reduce((s, ns, i) => s + (d.children(i).length ? 0 : ns), 0))"
        f"({R}.data)"
    )
    assert shown.run("top1.total") >= leaves


def test_the_flame_graph_is_as_wide_as_wall_time_or_cpu_time(page: Page, tmp_path: Path) -> None:
    open_report(page, tmp_path, two_jobs_with_usage())
    # gcc and ld ran at once from 300 to 500: make itself counts while neither did
    assert page.run(FRAMES) == [
        1200 * US, ["make", 1200 * US], ["gcc", 400 * US], ["ld", 400 * US]
    ]  # fmt: skip
    choose(page, "#flame select", "cpu")
    assert page.run(FRAMES) == [650 * US, ["make", 650 * US], ["gcc", 400 * US], ["ld", 200 * US]]
    widths = f"{R}.flame.boxes.map(b => [b.f.name, b.part]).sort((a, b) => b[1] - a[1])"
    parts = dict(page.run(widths))
    assert parts == pytest.approx({"all": 1, "make": 1, "gcc": 400 / 650, "ld": 200 / 650})
    choose(page, "#flame select", "wall")
    assert page.run(FRAMES)[0] == 1200 * US
    assert page.messages == []


def test_frames_too_narrow_to_read_are_one_that_opens(page: Page, tmp_path: Path) -> None:
    make, *jobs = (n << 22 | n for n in range(1, 102))
    trace = TraceBuilder(cwd="/src").exec(make, "/usr/bin/make", ["make"])
    for n, each in enumerate(jobs):
        trace.fork(make, each).exec(each, f"/usr/bin/tool{n}", ["tool"]).exit(each)
    open_report(page, tmp_path, trace.exit(make).trace())
    page.settle()
    widths = f"{R}.flame.boxes.map(b => b.part * {R}.flame.surface.width)"
    assert min(page.run(widths)) >= 44
    group = f"{R}.flame.boxes.find(b => b.f.others)"
    n_grouped = page.run(f"{group}.f.others.length")
    assert page.run(f"{group}.f.name") == f"{n_grouped} others"
    page.run(f"{R}.flame.zoom({group}.f)")
    page.settle()
    names = page.run(f"{R}.flame.boxes.map(b => b.f.name)")
    assert sum(name.startswith("tool") for name in names) >= 1
    assert page.messages == []
