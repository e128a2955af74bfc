# SPDX-License-Identifier: Apache-2.0
"""What make and ninja ran commands for: made builds, real builds, and logs that lie."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import libetrace
import pytest
from backends import capture, need_tool
from builders import O_CREAT, O_WRONLY, TraceBuilder
from databases import TRACE, capture_database, database_of, parse_database
from hypothesis import given
from hypothesis import strategies as st
from libetrace.core.hashes import murmur_hash, rapid_hash
from libetrace.depend.configuration import load
from libetrace.image.file import Image
from libetrace.image.header import read_header

from etrace.cli.main import cas
from etrace.errors import EtraceError
from etrace.nfsdb.products import reopen
from etrace.nfsdb.store import open_database
from etrace.postprocess.run import postprocess
from etrace.query import sql
from etrace.query.rows.records import Records
from etrace.query.rows.targets import Targets
from etrace.rules import goals
from etrace.rules.goals import (
    MAKE,
    NINJA,
    Edge,
    Job,
    NinjaLog,
    find_edges,
    find_goals,
    read_log,
)
from etrace.rules.recipes import Recipes

DATA = Path(__file__).resolve().parents[1] / "data"
MS = 1_000_000
#: Debian's writes logs of version 5 or 6, that of PyPI, which the build needs, of version 7
NINJAS = (Path("/usr/bin/ninja"), Path(sys.executable).with_name("ninja"))


def need_ninja(path: Path) -> Path:
    if not path.exists():
        pytest.fail(f"{path} is missing: install ninja-build, and run `make build`")
    return path


def run_phase(image: Image) -> tuple[Image, list[str]]:
    """Add the targets and return the image that has them, and what was reported."""
    reports: list[str] = []
    postprocess(image, load(Path()), ["targets"], force=True, say=reports.append)
    return reopen(image.path), reports


def found(image: Image) -> list[tuple[str, str]]:
    """Return (names of the target, command line) of each command."""
    targets, executions = Targets(image), image["executions"]
    strings = image["arguments"]["string"]
    out = []
    for row, binary in enumerate(executions["binary"]):
        if binary >= 0:
            argv = [image.string(strings[i]) for i in executions.span("argv.start", row)]
            names = b" ".join(targets.names(row)).decode(errors="replace")
            out.append((names, b" ".join(argv).decode()))
    return out


# ---- goals ----


@pytest.mark.parametrize(
    ("words", "goals"),
    [
        ("make", ""), ("make all", "all"), ("make -j2 all", "all"), ("make -j 2 all", "all"),
        ("make -j all", "all"), ("make --jobs 2 all", "all"), ("make --jobs all", "all"),
        ("make -C lib install", "install"), ("make -Clib install", "install"),
        ("make -kC lib install", "install"), ("make -f CMakeFiles/x/build.make x", "x"),
        ("make --file=m x", "x"), ("make --file m x", "x"), ("make --directory lib", ""),
        ("make x V=1 CC:=cc", "x"), ("make clean all", "clean all"), ("make all -s", "all"),
        ("make -O all", "all"), ("make -Oline all", "all"), ("make -l 2.5 all", "all"),
        ("make -- -x", "-x"), ("make --dir lib x", ""), ("make -v all", ""),
        ("make --version all", ""), ("make --debug=b -rR x", "x"), ("make -", "-"),
    ],
)  # fmt: skip
def test_goals_of_make_are_what_is_neither_option_nor_variable(words: str, goals: str) -> None:
    assert find_goals(MAKE, words.encode().split()) == goals.encode().split()


@pytest.mark.parametrize(
    ("words", "goals"),
    [("ninja -C out -j 2 all", "all"), ("ninja -t clean all", ""), ("ninja a=b", "a=b"),
     ("ninja --verbose -dstats x", "x"), ("ninja -h", "")],
)  # fmt: skip
def test_goals_of_ninja(words: str, goals: str) -> None:
    assert find_goals(NINJA, words.encode().split()) == goals.encode().split()


@pytest.mark.parametrize("words", ["-j2 x", "-j 2 x", "-j x", "-C d x", "-kC d x", "-l 2.5 x",
                                   "-O x", "x V=1", "-- x", "--jobs 2 x", "-E A=1 x"])  # fmt: skip
def test_make_itself_has_the_same_goals(words: str, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for folder in (tmp_path, tmp_path / "d"):
        (folder / "Makefile").write_text("$(info goals=$(MAKECMDGOALS))\n%: ; @:\n")
    command = ["make", *words.split()]
    env = {"PATH": os.environ["PATH"]}
    run = subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True, text=True)
    goals = b" ".join(find_goals(MAKE, [os.fsencode(word) for word in command])).decode()
    assert f"goals={goals}" in run.stdout.splitlines()


# ---- the log ----


@pytest.mark.parametrize("ninja", NINJAS, ids=["debian", "pypi"])
def test_hashes_are_those_of_ninja_for_every_length(ninja: Path, tmp_path: Path) -> None:
    commands = [":" + (" " + "x" * n if n else "") for n in (*range(200), 1000, 4001)]
    rules = [f"rule r{i}\n command = {text}\nbuild o{i}: r{i}" for i, text in enumerate(commands)]
    (tmp_path / "build.ninja").write_text("\n".join(rules) + "\n")
    subprocess.run([need_ninja(ninja), "-C", tmp_path], check=True, capture_output=True)
    log = read_log((tmp_path / ".ninja_log").read_bytes())
    assert log is not None
    for i, text in enumerate(commands):
        assert [edge.outputs for edge in log.find(text.encode())] == [(b"o%d" % i,)]


def test_the_version_selects_the_hash() -> None:
    line = b"0\t1\t2\to\t%x\n"
    for version, hash_of in ((5, murmur_hash), (6, murmur_hash), (7, rapid_hash)):
        log = read_log(b"# ninja log v%d\n" % version + line % hash_of(b"cc"))
        assert log is not None
        assert log.find(b"cc") == [Edge(0, 1, (b"o",))]
        assert not log.find(b"cc ")


def test_a_log_of_version_6_as_debian_13_writes_it() -> None:
    log = read_log(
        b"# ninja log v6\n"
        b"1\t3\t1795422692642602033\ta\t351d8478fa7b0447\n"
        b"2\t4\t1795422692644080599\tc\t50bb2f49ec3a19b2\n"
    )
    assert log is not None
    assert log.find(b": xxxx a") == [Edge(1, 3, (b"a",))]
    assert log.find(b"cat c.rsp > c;rspfile=foo bar") == [Edge(2, 4, (b"c",))]


WORDS = "-j -j2 -C -kC --jobs --file --file=x --dir -- - -O x V=1 2 -h -t"
WORD = st.sampled_from(WORDS.split())


@given(st.lists(WORD | st.text(max_size=5)))
def test_goals_are_words_of_the_command_line(words: list[str]) -> None:
    argv = [word.encode() for word in ["make", *words]]
    for builder in (MAKE, NINJA):
        assert set(find_goals(builder, argv)) <= set(argv[1:])


@given(st.binary(max_size=200) | st.text("0123456789\t\nabo", max_size=200).map(str.encode))
def test_any_bytes_are_a_log(text: bytes) -> None:
    log = read_log(b"# ninja log v5\n" + text)
    assert log is not None
    names = [name for edges in log.edges.values() for edge in edges for name in edge.outputs]
    assert all(name in text for name in names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("head", [b"", b"# ninja log v4\n", b"# ninja log v8\n", b"#", b"\n",
                                  b"# ninja log v99999999999\n"])  # fmt: skip
def test_a_log_of_another_version_is_none(head: bytes) -> None:
    assert read_log(head + b"0\t1\t2\to\t12\n") is None


@pytest.mark.parametrize(
    "line",
    [b"0\t1\t2\to", b"0\t1\to\t12", b"-1\t1\t2\to\t12", b"9" * 11 + b"\t1\t2\to\t12",
     b"0\t1\t2\to\t" + b"1" * 17, b"0\t1\t2\t\t12", b"0\t1\t2\to\t1g", b"0\t1\t2\to\t12\t3",
     b"0\t1\t2\t" + b"o" * 4097 + b"\t12", b"\xff\x00"],
)  # fmt: skip
def test_damaged_lines_cost_nothing_else(line: bytes) -> None:
    log = read_log(b"# ninja log v5\n" + line + b"\n5\t6\t0\tgood\t12\n")
    assert log is not None
    assert log.edges == {0x12: [Edge(5, 6, (b"good",))]}


def test_the_last_line_of_an_output_counts() -> None:
    log = read_log(b"# ninja log v5\n0\t1\t0\to\t12\n7\t8\t0\to\t12\n7\t8\t0\tp\t12\n")
    assert log is not None
    assert log.edges == {0x12: [Edge(7, 8, (b"o", b"p"))]}


def test_a_log_with_too_many_outputs_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goals, "MAX_OUTPUTS", 10)
    lines = [b"0\t1\t0\to%d\t12\n" % i for i in range(11)]
    assert read_log(b"# ninja log v5\n" + b"".join(lines[:10])) is not None
    assert read_log(b"# ninja log v5\n" + b"".join(lines)) is None


# ---- which edge ----


def edges_of(edges: Sequence[Edge], *jobs: tuple[int, int], start_ms: int = 0) -> dict[int, bytes]:
    """Return the outputs of jobs with one command, (start, end) in ms, by number."""
    log = NinjaLog(murmur_hash, {murmur_hash(b"cc"): edges})
    all_jobs = [Job(i, b"cc", a * MS, b * MS) for i, (a, b) in enumerate(jobs)]
    known = find_edges(log, all_jobs, start_ms * MS)
    return {number: b" ".join(edge.outputs) for number, edge in known.items()}


A, B = Edge(10, 20, (b"a",)), Edge(100, 150, (b"b",))


def test_times_distinguish_edges_of_one_command() -> None:
    assert edges_of([A, B], (15, 24), (105, 154), start_ms=4) == {0: b"a", 1: b"b"}
    assert edges_of([A], (15, 24), start_ms=4) == {0: b"a"}


def test_an_edge_of_another_run_is_not_taken() -> None:
    assert edges_of([A], (15, 600), start_ms=4) == {}  # it took longer than the log says
    assert edges_of([B], (15, 24), start_ms=4) == {}  # it began earlier after ninja than that


def test_a_tracer_may_see_an_end_late() -> None:
    assert edges_of([A], (15, 500), start_ms=4) == {0: b"a"}
    assert edges_of([A, Edge(10, 30, (b"c",))], (15, 34), start_ms=4) == {0: b"c"}


def test_what_two_may_claim_is_nobodys() -> None:
    assert edges_of([A], (15, 24), (15, 24)) == {}
    assert edges_of([A, Edge(11, 21, (b"c",))], (15, 24)) == {}
    assert edges_of([A, B], (105, 114)) == {}  # ninja may have begun to build just before


# ---- made builds ----

SH, TOP, RECIPE, SUB, CC, SHELL = (n << 22 | 10 + n for n in range(6))


def nested_makes(argv: str, sub: str = "make") -> TraceBuilder:
    t = TraceBuilder("/w").exec(TOP, "/usr/bin/make", argv.split()).fork(TOP, RECIPE)
    t.exec(RECIPE, "/bin/sh", ["sh", "-c", sub]).fork(RECIPE, SUB)
    t.exec(SUB, "/usr/bin/make", sub.split()).fork(SUB, CC).exec(CC, "/usr/bin/cc", ["cc"])
    return t.exit(CC).exit(SUB).exit(RECIPE).exit(TOP)


@pytest.mark.parametrize(
    ("top", "sub", "expected"),
    [
        ("make all", "make", ["", "all", "all", "all"]),
        ("make all", "make -C lib install", ["", "all", "all", "install"]),
        ("make", "make x", ["", "", "", "x"]),
        ("make clean all", "make", ["", "", "", ""]),
    ],
)
def test_commands_belong_to_the_nearest_goal(
    top: str, sub: str, expected: list[str], tmp_path: Path
) -> None:
    image, _ = run_phase(database_of(tmp_path, nested_makes(top, sub).trace()))
    assert [names for names, _ in found(image)] == expected


def test_what_remade_the_makefiles_is_for_no_goal(tmp_path: Path) -> None:
    t = TraceBuilder("/w").exec(TOP, "/usr/bin/make", ["make", "all"]).fork(TOP, RECIPE)
    t.exec(RECIPE, "/bin/sh", ["sh", "config.status"]).exit(RECIPE)
    t.exec(TOP, "/usr/bin/make", ["make", "all"]).fork(TOP, CC).exec(CC, "/bin/cc", ["cc"])
    image, _ = run_phase(database_of(tmp_path, t.exit(CC).exit(TOP).trace()))
    assert found(image) == [
        ("", "make all"), ("", "make all"), ("", "sh config.status"), ("all", "cc")
    ]  # fmt: skip


def test_a_ring_of_targets_ends(tmp_path: Path) -> None:
    image, _ = run_phase(database_of(tmp_path, nested_makes("make all", "make x").trace()))
    assert len(Targets(image).of_any(range(image["executions"].n_rows), ["all"])) == 6


# ---- real builds ----

BUILD = """rule two
  command = cat in > first && cp first second
build first second: two in
rule objects
  command = gcc @$out.rsp
  rspfile = $out.rsp
  rspfile_content = -c main.c -o $out
build main.o: objects main.c
rule fails
  command = exit 3
build bad: fails
rule sub
  command = make -f sub.mk inner
build sub.stamp: sub
"""
SUB_MK = "X := $(shell uname)\ndefault: ; false\ninner: ; @cat in > inner\n"


def write_build(folder: Path) -> None:
    folder.mkdir()
    (folder / "build.ninja").write_text(BUILD)
    (folder / "sub.mk").write_text(SUB_MK)
    (folder / "main.c").write_text("int main(void) { return 0; }\n")
    (folder / "in").write_text("in\n")


def capture_build(tmp_path: Path, ninja: Path, name: str = "build") -> Image:
    write_build(tmp_path / name)
    trace = tmp_path / f"{name}.db" / TRACE
    trace.parent.mkdir()
    options = ("--response-files", f"{trace}.rsp")
    command: list[str | Path] = [need_ninja(ninja), "-k0", "-j1"]
    captured = capture(command, tmp_path / name, trace=trace, env=dict(os.environ), options=options)
    assert captured.status in (1, 3)  # one of its commands fails, with 3 of which 1.13 ends too
    return parse_database(trace.parent)


@pytest.mark.parametrize("ninja", NINJAS, ids=["debian", "pypi"])
def test_commands_of_a_real_ninja_have_the_outputs_of_their_edges(
    ninja: Path, tmp_path: Path
) -> None:
    image, reports = run_phase(capture_build(tmp_path, ninja))
    assert reports == []
    known = {command: names for names, command in found(image)}
    wanted = {
        "cp first second": "first second", "gcc @main.o.rsp": "main.o",
        "/bin/sh -c exit 3": "", "make -f sub.mk inner": "sub.stamp", "uname": "sub.stamp",
    }  # fmt: skip
    assert {command: known[command] for command in wanted} == wanted
    cats = sorted(names for names, command in found(image) if command == "cat in")
    assert cats == ["first second", "inner"]
    assert all(names == "main.o" for names, command in found(image) if "cc1" in command)


def test_a_log_that_is_gone_or_moved_says_nothing(tmp_path: Path) -> None:
    image = capture_build(tmp_path, NINJAS[0])
    (tmp_path / "build").rename(tmp_path / "moved")
    image, reports = run_phase(image)
    log = tmp_path / "build/.ninja_log"
    assert reports == [f"{log} is gone or not a log of ninja 1.11 to 1.13: targets unknown"]
    assert {names for names, _ in found(image)} == {"", "inner"}
    write_build(tmp_path / "build")  # another build in its place, whose command took longer
    slow = (tmp_path / "moved/.ninja_log").read_text().splitlines()
    fields = [line.split("\t") for line in slow[1:]]
    later = ["\t".join((str(int(f[0]) + 10**8), str(int(f[1]) + 10**8), *f[2:])) for f in fields]
    (tmp_path / "build/.ninja_log").write_text("\n".join((slow[0], *later, "")))
    image, reports = run_phase(image)
    assert reports == []
    assert {names for names, _ in found(image)} == {"", "inner"}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def large(path: Path) -> None:
    path.write_bytes(b"# ninja log v5\n")
    os.truncate(path, goals.MAX_LOG_BYTES + 1)


def noise(path: Path) -> None:
    path.write_bytes(b"# ninja log v8\n" + random.Random(1).randbytes(10_000))


@pytest.mark.parametrize("make", [pipe, large, noise, Path.mkdir])
def test_what_is_no_log_is_not_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    log = tmp_path / ".ninja_log"
    make(log)
    t = TraceBuilder(tmp_path.as_posix()).exec(TOP, "/usr/bin/ninja", ["ninja"])
    t.use(TOP, log.as_posix(), flags=O_WRONLY | O_CREAT).fork(TOP, CC)
    t.exec(CC, "/bin/sh", ["/bin/sh", "-c", "cc"]).exit(CC).exit(TOP)
    image, reports = run_phase(database_of(tmp_path, t.trace()))
    assert len(reports) == 1
    assert {names for names, _ in found(image)} == {""}


@pytest.mark.parametrize(
    ("folders", "report"),
    [
        (
            [
                "b/CMakeFiles/CMakeScratch/TryCompile-x1",
                "b/CMakeFiles/CMakeTmp",
                "o/meson-private/t",
            ],
            "",
        ),
        (["conftest.dir", "w/.conf_check_0", ".sconf_temp", "config.tests/x"], ""),
        (["b", "b/CMakeFiles/CMakeTmp", "b"], "{}/b/.ninja_log is"),
        (["b", "c", "d"], "{}/b/.ninja_log and 2 more are"),
    ],
)
def test_logs_of_probes_are_not_missed_and_others_are_named_in_one_line(
    tmp_path: Path, folders: list[str], report: str
) -> None:
    t, top = TraceBuilder(tmp_path.as_posix()), TOP
    t.exec(top, "/bin/sh", ["sh"])
    for number, folder in enumerate(folders, 1000):
        log = f"{tmp_path}/{folder}/.ninja_log"
        t.fork(top, number).exec(number, "/usr/bin/ninja", ["ninja"])
        t.use(number, log, flags=O_WRONLY | O_CREAT).fork(number, number + 100)
        t.exec(number + 100, "/bin/sh", ["/bin/sh", "-c", "cc"]).exit(number + 100).exit(number)
    _, reports = run_phase(database_of(tmp_path, t.exit(top).trace()))
    ending = " gone or not a log of ninja 1.11 to 1.13: targets unknown"
    assert reports == ([report.format(tmp_path) + ending] if report else [])


def test_a_log_that_lies_adds_no_more_than_names(tmp_path: Path) -> None:
    """Cut and changed at random places, it names a target of its own or none."""
    image = capture_build(tmp_path, NINJAS[0])
    path, chance = tmp_path / "build/.ninja_log", random.Random(55)
    log = path.read_bytes()
    for _ in range(30):
        text = bytearray(log[: chance.randrange(len(log))])
        for _ in range(chance.randrange(4)):
            text[chance.randrange(len(text)) if text else 0 : 0] = chance.randbytes(1)
        path.write_bytes(text)
        image, _ = run_phase(image)
        assert ("", "/bin/sh -c exit 3") in found(image)


def test_make_and_its_shell_function(tmp_path: Path) -> None:
    write_build(tmp_path / "build")
    command = ["make", "-f", "sub.mk", "inner"]
    image, _ = run_phase(capture_database(tmp_path, command, tmp_path / "build"))
    assert {command: names for names, command in found(image)} == {
        "make -f sub.mk inner": "", "uname": "", "/bin/sh -c cat in > inner": "inner",
        "cat in": "inner",
    }  # fmt: skip


def test_compilations_of_cmakes_makefiles_belong_to_its_targets(tmp_path: Path) -> None:
    for tool in ("cmake", "make"):
        need_tool(tool, tool)
    source, build = tmp_path / "source", tmp_path / "build"
    shutil.copytree(DATA / "cmake_project", source)
    plan: list[str | Path] = ["cmake", "-G", "Unix Makefiles", "-S", source, "-B", build]
    subprocess.run(plan, check=True, capture_output=True)
    image, _ = run_phase(capture_database(tmp_path, ["make", "-j2"], build))
    compiling = {
        names for names, command in found(image) if "/c++ " in command and " -c " in command
    }
    assert compiling == {"CMakeFiles/shape.dir/build", "CMakeFiles/draw.dir/build"}


def test_programs_of_windows_are_left_alone(tmp_path: Path) -> None:
    image = database_of(tmp_path, nested_makes("make all").trace())
    image.attributes["path_style"] = "windows"  # type: ignore[index]
    assert not Recipes(Records(image)).of_make


# ---- asking ----


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    status = cas(list(words))
    shown = capsys.readouterr()
    assert (status, shown.err) == (0 if shown.out else 1, "")
    return shown.out.splitlines()


def test_commands_show_their_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_phase(database_of(tmp_path, nested_makes("make all", "make x").trace()))
    base = ("--dbdir", str(tmp_path), "commands")
    assert [line.split()[0] for line in ask(capsys, *base, "--targets")] == ["-", "all", "all", "x"]
    assert ask(capsys, *base, "--target", "x") == ["cc"]
    assert ask(capsys, *base, "--target", "al[l]") == ["sh -c 'make x'", "make x", "cc"]
    assert ask(capsys, *base, "--target", "none") == []
    shown = ask(capsys, *base, "--fmt", "{targets}", "--sorting-key", "targets")
    assert shown == ["all", "all", "x", ""]
    db = libetrace.nfsdb()
    db.load(tmp_path / ".nfsdb.img")
    assert [entry.targets for entry in db if entry.eid.index == 1] == [[], ["all"], ["all"], ["x"]]


def test_without_cas_pp_the_answer_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = database_of(tmp_path, nested_makes("make all").trace())
    assert "execution_targets" not in image.tables
    assert cas(["--dbdir", str(tmp_path), "commands", "--target", "all"]) == 2
    assert "run: cas pp --targets" in capsys.readouterr().err


def test_a_damaged_row_is_refused(tmp_path: Path) -> None:
    image, _ = run_phase(database_of(tmp_path, nested_makes("make all").trace()))
    data = bytearray(image.path.read_bytes())
    header = read_header(memoryview(data), image.path)
    column = header.tables["execution_targets"].columns["target"]
    at = header.start + column.offset + 4 * (column.length - 1)
    data[at : at + 4] = (99).to_bytes(4, "little")
    image.path.write_bytes(data)
    with pytest.raises(EtraceError, match=r"execution_targets\.target holds wrong row numbers"):
        open_database(tmp_path)
    db = libetrace.nfsdb()
    db.load(image.path)
    with pytest.raises(libetrace.error, match=r"execution_targets\.target"):
        [entry.targets for entry in db]


def test_sql_joins_commands_with_their_targets(tmp_path: Path) -> None:
    image, _ = run_phase(database_of(tmp_path, nested_makes("make all", "make x").trace()))
    statement = (
        "SELECT e.program, t.names, o.names FROM executions e"
        " JOIN execution_targets x ON x.execution = e.row JOIN targets t ON t.row = x.target"
        " LEFT JOIN targets o ON o.row = t.outer WHERE e.program = '/usr/bin/cc'"
    )
    assert list(sql.ask(image, statement).rows) == [("/usr/bin/cc", ["x"], ["all"])]
