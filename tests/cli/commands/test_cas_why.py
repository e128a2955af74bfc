# SPDX-License-Identifier: Apache-2.0
"""`cas why`, `cas diff`, `cas unused` and `cas deps` as commands: what they print and exit with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import O_CREAT, O_WRONLY, TraceBuilder
from databases import database_of, write_database

from etrace.cli.main import cas


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_database(tmp_path / "build")


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    status = cas([str(word) for word in words])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_a_chain_is_printed_from_the_target_on(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, "why", "--dbdir", database, "hello", "main.c", "--no-ordered")
    assert status == 0
    assert out == (
        "/src/hello\n"
        "  written by  ld -o hello main.o libutil.a  [33554440:1]\n"
        "  which read  /src/main.o\n"
        "  written by  cc1 main.c  [12582915:1]\n"
        "  which read  /src/main.c\n"
    )


def test_a_long_command_is_named_by_what_it_worked_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upid = 1 << 22 | 9
    words = ["cc1", *(f"-DNAME_{number}" for number in range(20)), "a.c", "-o", "a.s"]
    t = TraceBuilder("/w").exec(upid, "/usr/lib/cc1", words).use(upid, "/w/a.c")
    database_of(tmp_path, t.use(upid, "/w/a.s", flags=O_WRONLY | O_CREAT).exit(upid).trace())
    ask = ("why", "--db", tmp_path, "/w/a.s", "/w/a.c")
    named = f"  written by  cc1 a.c  [{upid}:1]"
    assert run(capsys, *ask)[1].splitlines() == ["/w/a.s", named, "  which read  /w/a.c"]
    assert f"  written by  {' '.join(words)}  [{upid}:1]" in run(capsys, *ask, "--full")[1]


def test_other_chains_are_said_to_be_there(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("why", "--dbdir", database, "hello", "util.h")
    _, out, said = run(capsys, *words)
    assert out
    assert said == (
        "cas: the shortest of several chains; 2 commands read the file: "
        "cas commands --path util.h\n"
    )
    assert run(capsys, *words, "--json")[2] == ""


def test_no_chain_ends_with_1_and_says_what_is_near(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, "why", "--dbdir", database, "main.o", "util.c")
    assert (status, out.splitlines()[0]) == (1, "/src/main.o does not depend on /src/util.c")
    assert "    /src/util.o" in out.splitlines()
    status, out, _ = run(capsys, "why", "--dbdir", database, "main.o", "util.c", "--json")
    found = json.loads(out)
    assert (status, found["depends"], found["chain"]) == (1, False, [])
    assert "/src/util.o" in found["made"]


def test_diff_ends_like_diff(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "diff", database, database) == (0, "", "")
    other = write_database(tmp_path / "other")
    text = (other / ".nfsdb.json").read_text().replace('"-UM"', '"-UN"')
    (other / ".nfsdb.json").write_text(text)
    status, out, _ = run(capsys, "diff", database, other)
    assert (status, out.splitlines()[1:]) == (1, ["    - argument -UM", "    + argument -UN"])
    assert run(capsys, "diff", "-q", database, other)[:2] == (1, "")
    changed = json.loads(run(capsys, "diff", "--json", database, other)[1])["changed"]
    assert changed[0]["arguments"] == {"removed": ["-UM"], "added": ["-UN"]}
    status, _, err = run(capsys, "diff", database, tmp_path / "none")
    assert status == 2
    assert "no such directory" in err


def test_unused_looks_here(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "dead.c").touch()
    status, out, _ = run(capsys, "unused", "--dbdir", database, "sources")
    assert (status, out) == (0, f"{tmp_path}/sources/dead.c\n")


def test_deps_in_every_form(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("deps", "--dbdir", database, "--no-ordered")
    assert run(capsys, *words, "main.o")[1] == "/src/main.c\n/src/util.h\n"
    assert json.loads(run(capsys, *words, "main.o", "--json")[1])["entries"] == [
        "/src/main.c",
        "/src/util.h",
    ]
    assert run(capsys, *words, "main.o", "--commands")[1] == "cc1 main.c\n"
    details = run(capsys, *words, "main.o", "--details")[1].splitlines()
    assert [line.partition(",")[0] for line in details] == ["/src/main.c", "/src/util.h"]
    graph = json.loads(run(capsys, *words, "main.o", "-G", "--json")[1])
    assert graph == {
        "dep_graph": {
            "/src/main.o": [[[12582915, ["/src/main.c", "/src/util.h"], ["cc1 main.c"]]], []]
        }
    }
    dot = run(capsys, *words, "main.o", "--dot")[1]
    assert dot.startswith("digraph dependencies {\n")
    assert dot.count(" -> ") == 3
    assert run(capsys, *words, "hello", "--cdm")[1] == (
        "/src/hello\t/src/main.c\n/src/hello\t/src/util.c\n"
    )
    assert run(capsys, *words, "util.c", "--rdm")[1] == (
        "/src/util.c\t/src/hello\n/src/util.c\t/src/libutil.a\n"
    )
    assert run(capsys, "deps", "--dbdir", database)[0] == 2
