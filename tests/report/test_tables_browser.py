# SPDX-License-Identifier: Apache-2.0
"""The tables of the page in a browser: they show what `cas` and the library answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import databases
import pytest
from browser import Page
from builders import TraceBuilder
from databases import database_of

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


def test_the_most_expensive_command_is_the_first(shown: Page) -> None:
    first = shown.run(f"{R}.data.ownTimes()[{R}.tables.commands.order[0]]")
    assert first == shown.run(f"Math.max(...{R}.data.ownTimes())")
    heads = "[...document.querySelectorAll('#commands [role=columnheader]')]"
    sorted_by = shown.run(f"{heads}.find(h => h.getAttribute('aria-sort') === 'descending')"
                          ".textContent")  # fmt: skip
    assert sorted_by.startswith("own time")  # the trace has no CPU times


def test_commands_say_what_they_were_for(shown: Page) -> None:
    script = "(d => [...d.role.keys()].map(i => [d.text(d.label[i]), d.text(d.role[i])]))"
    roles = dict(shown.run(f"{script}({R}.data)"))
    assert roles["gcc lvm.c"] == "compiler of lvm.o"
    assert roles["cc1 lvm.c"] == "compiler stage of lvm.o"
    assert roles["ar liblua.a"] == "archiver of liblua.a"
    assert roles["ld luac"] == "linker of luac"
    assert roles["collect2 luac"] == "linker driver of luac"
    assert roles["make all"] == "command"


def test_modules_are_made_of_what_deps_lists(shown: Page, ask: Any) -> None:
    modules = {m["path"]: m for m in shown.run(f"{R}.data.meta.modules")}
    assert sorted(modules) == sorted(each["filename"] for each in ask("linked_modules"))
    lua_module = modules[f"{databases.LUA_ROOT}/src/lua"]
    assert sum(each[1] for each in lua_module["made_of"]) == len(ask("deps", "src/lua"))


def test_sizes_that_are_not_known_are_not_zero(shown: Page) -> None:
    titles = "[...document.querySelectorAll('#modules .row')].map(row => row.textContent)"
    rows = [row for row in shown.run(titles) if "src/lua" in row]
    assert rows  # all files of this build were gone when its trace was parsed
    assert all("size not known" in row and "0 B" not in row for row in rows)


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


def test_the_critical_path_by_program_is_that_of_the_command(shown: Page, lua: Path) -> None:
    image = open_database(lua)
    labels = Labels(image)
    groups = group_path(find_critical_path(image), Phases(Commands(image), labels), labels)
    expected = [
        [labels.of(g.phase) if g.phase != NONE else "-", g.program, g.n_steps] for g in groups
    ]
    assert [[row[0], row[1], int(row[4])] for row in cells(shown, "path")] == expected


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
