# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: it shows what `cas` answers, and works by mouse and by keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import databases
import pytest
from advise.stories import Seconds, image_of
from browser import Page, browser
from builders import TraceBuilder
from databases import database_of
from report.two_builds import Recipe
from timing.builds import US, two_jobs_with_usage

from etrace.cli.main import cas, etrace
from etrace.nfsdb.store import open_database
from etrace.query.phases import Phases
from etrace.query.rows.commands import Commands
from etrace.query.rows.labels import Labels
from etrace.spec.database import NONE
from etrace.timing.critical_path import find_critical_path
from etrace.timing.path_groups import group_path

pytestmark = pytest.mark.xdist_group("browser")
R = "etraceReport"
MARKUP = "<img src=x onerror=document.title=0>"  # also as the name of a file
EVIL = "</script><img src=x onerror=\"document.title='owned'\">.c"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A page of one browser for all tests."""
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of the Lua build, with its report."""
    where = databases.write_processed_lua(tmp_path_factory.mktemp("lua"))
    assert etrace(["report", "-o", str(where / "build.html"), str(where)]) == 0
    return where


@pytest.fixture
def shown(page: Page, lua: Path) -> Page:
    """The report of the Lua build, freshly opened."""
    page.messages.clear()
    page.requests.clear()
    page.open(lua / "build.html")
    return page


@pytest.fixture
def ask(lua: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Ask `cas` for entries."""

    def asked(*words: str) -> Any:
        assert cas([*words, "--dbdir", str(lua), "--json", "--details", "-n", "0"]) == 0
        return json.loads(capsys.readouterr().out)["entries"]

    return asked


def cells(page: Page, part: str) -> list[list[str]]:
    """Return the texts of the rows of a table that are in view."""
    script = f"[...document.querySelectorAll('#{part} .body .row')].map(r => {{"
    script += " return [...r.children].map(c => c.textContent); })"
    found: list[list[str]] = page.run(script)
    return found


def command_key(page: Page, expression: str) -> list[str]:
    """Return `upid:index` of commands that an expression lists."""
    script = f"{expression}.map(i => `${{{R}.data.upid[i]}}:${{{R}.data.index[i]}}`)"
    found: list[str] = page.run(script)
    return sorted(found)


def test_the_page_needs_no_network_and_says_no_errors(shown: Page, lua: Path) -> None:
    assert set(shown.requests) == {(lua / "build.html").as_uri()}
    assert shown.messages == []
    assert shown.run("document.getElementById('plain').hidden") is True


def test_the_commands_are_those_of_cas(shown: Page, ask: Any) -> None:
    expected = sorted(f"{each['pid']}:{each['idx']}" for each in ask("tree"))
    assert command_key(shown, f"Array.from({{length: {R}.data.n}}, (_, i) => i)") == expected
    first = f"Array.from({{length: {R}.data.n}}, (_, i) => {R}.data.argvOf(i))"
    assert sorted(shown.run(first)) == sorted(each["command"] for each in ask("tree"))


def test_a_search_finds_the_commands_that_name_it(shown: Page, ask: Any) -> None:
    shown.run("document.querySelector('#timeline input[type=search]').focus()")
    shown.call("Input.insertText", text="lvm.c")
    shown.run(
        f"new Promise(done => {{ const look = () => {R}.timeline.found ? done()"
        " : requestAnimationFrame(look); look(); })"
    )
    found = f"Array.from({R}.timeline.found.keys()).filter(i => {R}.timeline.found[i])"
    expected = [e for e in ask("commands") if any("lvm.c" in word for word in e["command"])]
    assert expected
    assert command_key(shown, found) == sorted(f"{e['pid']}:{e['idx']}" for e in expected)


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


def test_a_click_on_a_command_says_about_it_and_escape_closes(shown: Page, ask: Any) -> None:
    longest = max(ask("compiled", "--commands"), key=lambda e: int(e["etime"]))
    number = (
        f"Array.from({R}.data.upid).findIndex((u, i) => u === {longest['pid']}"
        f" && {R}.data.index[i] === {longest['idx']})"
    )
    x, y = shown.run(
        f"(i => {{ const t = {R}.timeline, b = t.surface.canvas.getBoundingClientRect();"
        f" return [b.left + t.x({R}.data.start[i] + {R}.data.elapsed[i] / 2, b.width),"
        " b.top + 56 + (t.lane[i] + .5) * t.laneHeight]; })(" + number + ")"
    )
    shown.click(x, y)
    assert shown.run("document.querySelector('#details dl').textContent").count(
        f"{longest['pid']}:{longest['idx']}"
    )
    line = shown.run("document.querySelector('#details .command-line').textContent")
    assert line.startswith(longest["command"][0])
    assert longest["command"][-1] in line
    shown.key("Escape", 27)
    assert shown.run("document.getElementById('details').hidden") is True


def test_the_table_sorts_and_filters(shown: Page, ask: Any) -> None:
    shown.run("[...document.querySelectorAll('#commands .heads button')][1].click()")
    shown.settle()
    longest = max(int(each["etime"]) for each in ask("tree"))
    assert shown.run(f"{R}.data.elapsed[{R}.tables.commands.order[0]]") == longest
    heads = "[...document.querySelectorAll('#commands [role=columnheader]')]"
    assert shown.run(f"{heads}[1].getAttribute('aria-sort')") == "descending"
    shown.run(f"{R}.tables.commands.filter({R}.data.commandsMatching('lgc.c'))")
    rows = shown.run("document.querySelectorAll('#commands .body .row').length")
    assert rows == sum(any("lgc.c" in w for w in e["command"]) for e in ask("tree"))


def test_arrows_and_enter_open_a_row(shown: Page) -> None:
    shown.run("document.querySelector('#commands .table').focus()")
    shown.key("ArrowDown", 40)
    shown.key("ArrowDown", 40)
    shown.key("Enter", 13)
    assert shown.run(f"{R}.details.chosen") == shown.run(f"{R}.tables.commands.order[1]")


def test_modules_are_made_of_what_deps_lists(shown: Page, ask: Any) -> None:
    modules = {m["path"]: m for m in shown.run(f"{R}.data.meta.modules")}
    assert sorted(modules) == sorted(each["filename"] for each in ask("linked_modules"))
    lua_module = modules[f"{databases.LUA_ROOT}/src/lua"]
    assert sum(each[1] for each in lua_module["made_of"]) == len(ask("deps", "src/lua"))


def test_headers_are_those_of_includes(shown: Page, ask: Any) -> None:
    expected = [[e["filename"], e["compilations"], e["opens"]] for e in ask("includes")]
    found = shown.run(
        f"(d => [...d.column('header.path')].map((p, i) => [d.text(p),"
        f" d.column('header.compilations')[i], d.column('header.opens')[i]]))({R}.data)"
    )
    assert found == expected


def test_the_neighbours_of_a_file_are_its_readers_and_writers(shown: Page, ask: Any) -> None:
    path = f"{databases.LUA_ROOT}/src/lvm.o"
    shown.run(
        f"{R}.neighbours.show([...{R}.data.filePath].findIndex(p => {R}.data.text(p) ==="
        f" {json.dumps(path)}))"
    )
    opens = ask("faccess", "--path", path)
    writers, readers = (
        {f"{e['pid']}:{e['idx']}" for e in opens if letter in e["access"]} for letter in "wr"
    )
    assert writers & readers  # `as` reads what it wrote: it is on the left only
    for column, expected in ((-1, writers), (1, readers - writers)):
        found = command_key(shown, f"{R}.neighbours.found.columns.get({column})")
        assert found == sorted(expected)
        assert found
    assert shown.run("document.querySelectorAll('#neighbours .node.centre').length") == 1


def test_the_critical_path_is_that_of_the_library(shown: Page, lua: Path) -> None:
    image = open_database(lua)
    found, executions = find_critical_path(image), image["executions"]
    expected = {f"{executions['upid'][row]}:{executions['index'][row]}" for row in found.executions}
    marked = f"Array.from({R}.data.critical.keys()).filter(i => {R}.data.critical[i])"
    assert command_key(shown, marked) == sorted(expected)
    assert shown.run(f"{R}.data.meta.critical.ns") == found.path_ns


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


FRAMES = (
    f"(r => [r.total, ...[...r.below.values()].flatMap(m => [[m.name, m.total],"
    f" ...[...m.below.values()].map(f => [f.name, f.total])])])({R}.flame.root)"
)


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


def failed_build(where: Path) -> None:
    """Write the database of a build that failed."""
    make, cc = (n << 22 | n for n in (1, 2))
    trace = TraceBuilder(cwd="/src").exec(make, "/usr/bin/make", ["make"])
    trace.fork(make, cc).exec(cc, "/usr/bin/cc", ["cc", "-c", EVIL]).open(cc, f"/src/{EVIL}")
    trace.written(cc, f"a.c:1: {EVIL} is wrong\n")
    database_of(where, trace.exit(cc, 1).exit(make, 2).trace())


def test_a_failed_build_begins_with_the_command_that_failed(page: Page, tmp_path: Path) -> None:
    failed_build(tmp_path)
    assert etrace(["report", "-o", str(tmp_path / "b.html"), str(tmp_path)]) == 0
    page.messages.clear()
    page.open(tmp_path / "b.html", dark=True)
    assert page.run("document.querySelector('main').firstElementChild.id") == "failures"
    text = page.run("document.querySelector('[role=alert]').textContent")
    assert "status 1" in text
    assert EVIL in text
    assert page.run("document.querySelector('#failures .output').textContent") == (
        f"a.c:1: {EVIL} is wrong"
    )
    assert page.run("document.images.length") == 0
    assert page.messages == []


def test_a_browser_that_cannot_inflate_shows_plain_tables(page: Page, lua: Path) -> None:
    script = page.call(
        "Page.addScriptToEvaluateOnNewDocument", source="delete globalThis.DecompressionStream"
    )
    try:
        page.open(lua / "build.html")
        assert page.run("document.getElementById('plain').hidden") is False
        assert page.run("document.querySelectorAll('#plain table').length") == 2
        assert "DecompressionStream" in page.run("document.querySelector('.bad').textContent")
    finally:
        page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


def test_the_timeline_as_html_is_the_page_with_its_timeline_first(
    page: Page, tmp_path: Path
) -> None:
    failed_build(tmp_path)
    target = tmp_path / "timeline.html"
    assert etrace(["timeline", "--to", "html", "-o", str(target), str(tmp_path)]) == 0
    page.open(target)
    assert page.run("document.querySelector('main section').id") == "timeline"
    assert page.run("document.querySelector('nav a').getAttribute('href')") == "#timeline"
    assert page.run("document.querySelector('#failures') !== null") is True


def test_the_timeline_as_html_has_no_lanes_to_choose(tmp_path: Path) -> None:
    assert etrace(["timeline", "--to", "html", "--lanes", "packed", str(tmp_path)]) == 2


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


def test_commands_say_what_they_were_for(shown: Page) -> None:
    script = "(d => [...d.role.keys()].map(i => [d.text(d.label[i]), d.text(d.role[i])]))"
    roles = dict(shown.run(f"{script}({R}.data)"))
    assert roles["gcc lvm.c"] == "compiler of lvm.o"
    assert roles["cc1 lvm.c"] == "compiler stage of lvm.o"
    assert roles["ar liblua.a"] == "archiver of liblua.a"
    assert roles["ld luac"] == "linker of luac"
    assert roles["collect2 luac"] == "linker driver of luac"
    assert roles["make all"] == "command"


def test_the_most_expensive_command_is_the_first(shown: Page) -> None:
    first = shown.run(f"{R}.data.ownTimes()[{R}.tables.commands.order[0]]")
    assert first == shown.run(f"Math.max(...{R}.data.ownTimes())")
    heads = "[...document.querySelectorAll('#commands [role=columnheader]')]"
    sorted_by = shown.run(f"{heads}.find(h => h.getAttribute('aria-sort') === 'descending')"
                          ".textContent")  # fmt: skip
    assert sorted_by.startswith("own time")  # the trace has no CPU times


def test_the_critical_path_by_program_is_that_of_the_command(shown: Page, lua: Path) -> None:
    image = open_database(lua)
    labels = Labels(image)
    groups = group_path(find_critical_path(image), Phases(Commands(image), labels), labels)
    expected = [
        [labels.of(g.phase) if g.phase != NONE else "-", g.program, g.n_steps] for g in groups
    ]
    assert [[row[0], row[1], int(row[4])] for row in cells(shown, "path")] == expected


def test_sizes_that_are_not_known_are_not_zero(shown: Page) -> None:
    titles = "[...document.querySelectorAll('#modules .row')].map(row => row.textContent)"
    rows = [row for row in shown.run(titles) if "src/lua" in row]
    assert rows  # all files of this build were gone when its trace was parsed
    assert all("size not known" in row and "0 B" not in row for row in rows)


def test_an_error_of_a_fifth_and_more_is_a_range(shown: Page) -> None:
    asked = {
        (1e9, 1e8): "1.00 s \u00b1 100 ms", (1e9, 5e8): "500 ms to 1.50 s",
        (1e9, 2e9): "at most 3.00 s", (-1e9, 5e8): "not known", (-1, -1): "not known",
    }  # fmt: skip
    for (ns, error), text in asked.items():
        assert shown.run(f"{R}.estimate({ns}, {error})") == text


def configured(where: Path) -> None:
    """Write the database of a configure run with two probes, and a make."""
    sh, run, make = (n << 22 | n for n in (1, 2, 90))
    trace = TraceBuilder(cwd="/src").exec(sh, "/bin/sh", ["sh", "-c", "./configure && make"])
    trace.fork(sh, run).exec(run, "/bin/bash", ["/bin/bash", "./configure"])
    number = 10
    for option, status in (("-c", 0), ("-E", 1)):
        cat, sub, cc, rm = (n << 22 | n for n in range(number, number + 4))
        trace.fork(run, cat).exec(cat, "/bin/cat", ["cat", "confdefs.h"])
        trace.open(cat, "/src/conftest.c", flags=1).exit(cat)
        trace.fork(run, sub).fork(sub, cc)  # ( eval "$ac_compile" ): a shell below the shell
        trace.exec(cc, "/usr/bin/gcc", ["gcc", option, "conftest.c"]).exit(cc, status)
        trace.exit(sub, status)
        trace.fork(run, rm).exec(rm, "/bin/rm", ["rm", "-f", "conftest.c"]).exit(rm)
        number += 4
    trace.exit(run).fork(sh, make).exec(make, "/usr/bin/make", ["make"]).exit(make).exit(sh)
    database_of(where, trace.trace())


def test_a_configure_run_is_folded_into_its_probes(page: Page, tmp_path: Path) -> None:
    configured(tmp_path)
    assert etrace(["report", "-o", str(tmp_path / "b.html"), str(tmp_path)]) == 0
    page.messages.clear()
    page.open(tmp_path / "b.html")
    titles = "[...document.querySelectorAll('#phases summary b')].map(e => e.textContent)"
    assert page.run(titles) == ["bash configure", "make"]
    page.run("document.querySelector('#phases summary').focus()")
    page.key("Enter", 13)
    page.run(
        "new Promise(done => { const look = () => document.querySelector('#phases .body .row')"
        " ? done() : requestAnimationFrame(look); look(); })"
    )
    rows = [[row[0], row[1], row[2], row[5]] for row in cells(page, "phases")]
    assert rows == [["1", "compile", "succeeded", "3"], ["2", "preprocess", "failed (1)", "3"]]
    summary = "document.querySelector('#phases summary').textContent"
    assert "2 probes" in page.run(summary)
    assert page.messages == []


@pytest.mark.parametrize("width", [390, 1024, 1920])
@pytest.mark.parametrize("is_dark", [False, True])
def test_the_page_is_no_wider_than_the_window(
    page: Page, lua: Path, width: int, is_dark: bool
) -> None:
    page.open(lua / "build.html", dark=is_dark, width=width)
    assert page.run("document.documentElement.scrollWidth") == width


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


@pytest.mark.parametrize("is_dark", [False, True])
def test_a_comparison_is_drawn_without_a_script(page: Page, tmp_path: Path, is_dark: bool) -> None:
    for name, sources in (("a", {"a": 100, "b": 200}), ("b", {"a": 150, "b": 180, MARKUP: 1})):
        (tmp_path / name).mkdir()
        Recipe(tmp_path / name, sources=sources).write(tmp_path / f"{name}.db")
    where, written = [str(tmp_path / f"{name}.db") for name in "ab"], tmp_path / "compared.html"
    assert etrace(["compare", *where, "-q", "-o", str(written)]) == 0
    page.messages.clear()
    page.requests.clear()
    page.open(written, dark=is_dark, width=390)
    assert page.messages == []
    assert page.requests == [written.as_uri()]
    assert page.run("document.scripts.length") == 0
    assert page.run("document.title") == "etrace compare"
    assert page.run("document.querySelector('h1').textContent").endswith(
        "compared with " + where[0]
    )
    texts = page.run("[...document.querySelectorAll('td')].map(cell => cell.textContent)")
    assert f"cc1 {MARKUP}.c" in texts
    widths = "[...document.querySelectorAll('#part2 rect')].map(bar => bar.getAttribute('width'))"
    assert [float(width) for width in page.run(widths)] == [60.0]
    assert page.run("document.documentElement.scrollWidth") <= 390


def test_the_findings_are_those_of_advise(
    page: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Seconds()
    story.run((0, 1000), "sleep", "1")
    story.run((0, 900), "curl", EVIL)
    story.end(2000)
    image_of(tmp_path, story)
    assert etrace(["advise", "--json", str(tmp_path)]) == 0
    expected = json.loads(capsys.readouterr().out)["findings"]
    assert etrace(["report", "-o", str(tmp_path / "b.html"), str(tmp_path)]) == 0
    page.messages.clear()
    page.open(tmp_path / "b.html")
    assert page.run("document.querySelector('main').firstElementChild.id") == "advice"
    titles = page.run("[...document.querySelectorAll('.finding b')].map(each => each.textContent)")
    assert titles == [each["title"] for each in expected]
    page.run("document.querySelector('#finding-downloads').open = true")
    page.run("document.querySelector('#finding-downloads button').click()")
    assert "onerror" in page.run("document.querySelector('#details').textContent")
    assert page.run("document.images.length") == 0
    assert page.messages == []


def test_a_build_without_findings_has_no_advice(page: Page, tmp_path: Path) -> None:
    database_of(tmp_path, two_jobs_with_usage())
    assert etrace(["report", "-o", str(tmp_path / "b.html"), str(tmp_path)]) == 0
    page.open(tmp_path / "b.html")
    assert page.run("document.querySelector('#advice') === null") is True
