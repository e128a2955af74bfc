# SPDX-License-Identifier: Apache-2.0
"""Answers as lines, as JSON, in pages, in files: the whole of `cas` on the small build."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import databases
import pytest
from backends import need_root

from etrace.cli import spellings
from etrace.cli.cas import program as cas
from etrace.cli.main import cas as run_cas

FILES = [b"/src/Makefile", b"/src/hello", b"/src/libutil.a", b"/src/main.c", b"/src/main.o",
         b"/src/util.c", b"/src/util.h", b"/src/util.o"]  # fmt: skip


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return databases.write_database(tmp_path_factory.mktemp("build"))


@pytest.fixture
def ask(
    database: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Any:
    """Run `cas` in the small build; returns what it printed."""
    monkeypatch.setenv("DB_DIR", str(database))

    def run(*words: str) -> bytes:
        status = run_cas(list(words))
        shown = capfdbinary.readouterr()
        assert shown.err == b""
        assert status in (0, 1)
        return shown.out

    return run


def lines(*items: bytes) -> bytes:
    return b"".join(item + b"\n" for item in items)


# ---- lines ----


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], FILES),
        (["--relative"], [path.removeprefix(b"/src/") for path in FILES]),
        (["--reverse"], FILES[::-1]),
        (["--range", "2:4"], FILES[2:4]),
        (["--range", "[:6:2]"], FILES[:6:2]),
        (["--range=-2:"], FILES[-2:]),
        (["-n", "3"], FILES[:3]),
        (["-n", "3", "-p", "2"], FILES[6:]),
        (["-n", "3", "-p", "3"], []),
        (["--reverse", "-n", "1"], FILES[-1:]),
        (["-l"], [b"8"]),
        (["-l", "-n", "3"], [b"8"]),
        (["-l", "--range", "1:3"], [b"2"]),
        (["--path", "util.h", "--details"], [
            b"/src/util.h,/src/util.h,12582915,plain,2002,2007,r,1,102,header",
            b"/src/util.h,/src/util.h,20971525,plain,4001,4006,r,1,101,header",
        ]),
        (["--filter", ".a", "--fmt", "{{{filename}}} {access} {ppid}"],
         [b"{/src/libutil.a} w 25165830", b"{/src/libutil.a} r 33554440"]),
    ],
)  # fmt: skip
def test_lines(ask: Any, words: list[str], wanted: list[bytes]) -> None:
    assert ask("refs", *words) == lines(*wanted)


def test_entries_can_end_by_nul(ask: Any) -> None:
    assert ask("refs", "-0") == b"".join(path + b"\0" for path in FILES)


def test_options_may_come_before_the_module(ask: Any) -> None:
    assert ask("--range", "2:4", "-R", "refs") == b"libutil.a\nmain.c\n"


def test_a_command_is_quoted_for_a_shell_unless_raw(tmp_path: Path, ask: Any) -> None:
    assert ask("cmds", "--pid", f"{databases.GCC_MAIN}") == b"gcc -DN=1 -UM -c main.c\n"
    assert ask("cmds", "--pid", f"{databases.LD}", "--details") == (
        b"33554440,1,7010,500,29360135:1,/usr/bin/ld,/src,ld -o hello main.o libutil.a,"
        b"/src/hello,None,None\n"
    )


def test_sorting(ask: Any) -> None:
    by_line = ask("cmds", "-s").splitlines()
    assert by_line == sorted(by_line)
    pids = ask("execs", "--sorting-key", "pid", "--reverse", "--fmt", "{pid}").splitlines()
    assert [int(pid) for pid in pids] == sorted(map(int, pids), reverse=True)
    times = ask("execs", "--sorting-key", "stime", "--fmt", "{stime}").splitlines()
    assert times == sorted(times, key=int)
    programs = ask("cmds", "--sorting-key", "bin", "--fmt", "{bin}").splitlines()
    assert programs == sorted(programs)


@pytest.mark.parametrize("order", [(), ("--reverse",)])
def test_entries_without_the_key_are_last(ask: Any, order: tuple[str, ...]) -> None:
    found = ask("execs", "--sorting-key", "status", *order, "--fmt", "{status}").split(b"\n")
    assert found == [b"0"] * 8 + [b""] * 9


# ---- files ----


def test_a_file_appears_whole(ask: Any, tmp_path: Path) -> None:
    out = tmp_path / "files"
    assert ask("refs", "-o", str(out)) == b""
    assert out.read_bytes() == lines(*FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


def test_a_link_is_followed_and_a_device_stays_one(ask: Any, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("files")
    ask("refs", "-o", str(link))
    assert link.is_symlink()
    assert link.read_bytes() == lines(*FILES)
    device = tmp_path / "null"
    device.symlink_to("/dev/null")
    ask("refs", "-o", str(device))
    assert Path("/dev/null").is_char_device()


def test_a_file_that_cannot_be_made_changes_nothing(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "files"
    out.write_text("before")
    words = ["--dbdir", str(database), "refs", "--fmt", "{nothing}", "-o", str(out)]
    assert run_cas(words) == 2
    assert out.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["files"]
    assert "no key 'nothing'" in capsys.readouterr().err


# ---- JSON ----


def envelope(count: int, entries: list[Any], *, page: int = 0, last: int = 0, size: int = 0) -> Any:
    return {"count": count, "page": page, "page_max": last, "entries_per_page": size,
            "num_entries": len(entries), "entries": entries}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], envelope(8, FILES)),
        (["-n", "3"], envelope(8, FILES[:3], last=2, size=3)),
        (["-n", "4", "-p", "1"], envelope(8, FILES[4:], page=1, last=1, size=4)),
        (["-n", "8"], envelope(8, FILES, last=0, size=8)),
        (["-n", "3", "-p", "9"], envelope(8, [], page=9, last=2, size=3)),
        (["--filter", "nothing", "-n", "3"], envelope(0, [], size=3)),
        (["-l"], {"count": 8}),
    ],
)
def test_the_envelope(ask: Any, words: list[str], wanted: Any) -> None:
    if "entries" in wanted:
        wanted = wanted | {"entries": [os.fsdecode(path) for path in wanted["entries"]]}
    assert json.loads(ask("refs", "--json", *words)) == wanted


OPEN = {"filename", "original_path", "open_timestamp", "close_timestamp", "ppid", "pidx", "type",
        "access", "exists", "link", "size", "kind"}  # fmt: skip
COMMAND = {"class", "pid", "idx", "ppid", "pidx", "stime", "etime", "bin", "cwd", "command",
           "status"}  # fmt: skip
COMPILATION = {"command", "source_type", "compiled_files", "include_paths", "headers", "defs",
               "undefs", "objects", "is_child"}  # fmt: skip
SHAPES: dict[str, set[str] | type | None] = {
    "linked-modules": str, "compiled": str, "binaries": str, "ref-files": str, "procref": str,
    "revcomps-for": str, "compilation-info-for": COMPILATION, "commands": COMMAND,
    "execs": COMMAND, "tree": {*COMMAND, "depth"},
    "faccess": {"pid", "idx", "access", "filename", "execution"},
    "compiler_pattern": {"pattern"}, "linker_pattern": {"pattern"},
    "info": None, **dict.fromkeys(("stat", "root_pid", "source_root", "version", "config")),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_the_json_of_every_module(ask: Any, name: str) -> None:
    made, shape = json.loads(ask(name, "--json")), SHAPES[name]
    if shape is None:  # one record, no envelope
        assert "entries" not in made
        return
    assert made["count"] == made["num_entries"] == len(made["entries"]) > 0
    for entry in made["entries"]:
        if isinstance(shape, type):
            assert isinstance(entry, shape)
        else:
            assert shape <= entry.keys()


@pytest.mark.parametrize(("name", "shape"), [("ref-files", OPEN), ("procref", OPEN)])
def test_details_in_json(ask: Any, name: str, shape: set[str]) -> None:
    entries = json.loads(ask(name, "--json", "--details"))["entries"]
    assert [entry for entry in entries if entry.keys() != shape] == []


def test_every_query_of_the_core_has_its_shape_checked() -> None:
    elsewhere = {"deps", "rdeps", "moddeps", "revmoddeps", "includes", "unused"}  # tests/query
    assert {c.name for c in cas.QUERIES} - elsewhere == SHAPES.keys() - spellings.FACTS.keys()


def test_one_command_in_full(ask: Any) -> None:
    (entry,) = json.loads(ask("cmds", "--json", "--pid", f"{databases.GCC_MAIN}"))["entries"]
    assert entry == {
        "class": "compiler", "pid": databases.GCC_MAIN, "idx": 1, "ppid": databases.MAKE,
        "pidx": 1, "stime": "1010", "etime": "500", "bin": "/usr/bin/gcc", "cwd": "/src",
        "command": ["gcc", "-DN=1", "-UM", "-c", "main.c"], "status": 0,
        "compiled": {"/src/main.c": "c"}, "objects": ["/src/main.o"],
    }  # fmt: skip


def test_facts_are_one_record(ask: Any) -> None:
    assert json.loads(ask("rpid", "--json")) == {"root_pid": databases.MAKE}
    assert json.loads(ask("sroot", "--json")) == {"source_root": "/src"}
    assert json.loads(ask("rcomps", "--rcm", "--path", "util.h", "--json")) == {
        "/src/util.h": ["/src/main.c", "/src/util.c"]
    }


# ---- pipelines ----


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("bins --filter .a refs", FILES[1:3] + FILES[4:5] + FILES[7:]),
        ("refs --filter main.o cmds --raw-command",
         [b"cc1 main.c", b"ld -o hello main.o libutil.a"]),
        ("cmds --command-filter [bin=/ar] refs -R", [b"libutil.a", b"util.o"]),
        ("refs --path util.h fa", [b"12582915:1,r", b"20971525:1,r"]),
        ("refs --path util.h fa pr -R", [b"main.c", b"main.o", b"util.c", b"util.h", b"util.o"]),
        ("lm --range 0:1 cmds", [b"ld -o hello main.o libutil.a"]),
        ("rpid pr --with-children -l", [b"8"]),
        ("cc --range 1:2 rcomps", [b"/src/util.c"]),
        ("cc ci --fmt {objects}", [b"/src/main.o", b"/src/util.o"]),
        ("refs --filter nothing cmds", []),
    ],
)  # fmt: skip
def test_a_module_takes_what_the_one_before_gives(
    ask: Any, words: str, wanted: list[bytes]
) -> None:
    assert ask(*words.split()) == lines(*wanted)


@pytest.mark.root
def test_a_link_of_another_user_is_not_written_through(
    database: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    need_root()
    precious, link = tmp_path / "precious", tmp_path / "link"
    precious.write_text("precious")
    link.symlink_to(precious)
    os.lchown(link, 65534, 65534)
    assert run_cas(["refs", "--dbdir", str(database), "-o", str(link)]) == 2
    assert "it is a link of another user" in capfd.readouterr().err
    assert precious.read_text() == "precious"
    os.lchown(link, 0, 0)
    assert run_cas(["refs", "--dbdir", str(database), "-o", str(link)]) == 0
    assert precious.read_bytes().startswith(b"/src/")


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_file_may_be_read_by_whom_the_database_may_be(
    tmp_path: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments are secrets, and commands have them."""
    monkeypatch.chdir(databases.write_database(tmp_path))
    assert run_cas(["cmds", "-o", "first"]) == 0
    (tmp_path / ".nfsdb.img").chmod(mode)
    assert run_cas(["cmds", "-o", "second"]) == 0
    assert (tmp_path / "second").stat().st_mode & 0o777 == mode
