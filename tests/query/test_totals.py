# SPDX-License-Identifier: Apache-2.0
"""The figures of a build: every command and the page give one number for one word."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import TraceBuilder
from databases import TRACE, capture_database, database_of, write_lua
from libetrace.image.file import Image
from timing.builds import (
    Story,
    a_pipeline,
    two_directories,
    two_jobs_with_usage,
    two_objects_and_a_link,
)

from etrace.cli.main import cas, etrace
from etrace.cli.top.running import Running
from etrace.figures import seconds
from etrace.nfsdb.store import open_database
from etrace.query.totals import MEANINGS, Totals, totals
from etrace.report.page import pack

Ask = Callable[..., str]
DOCUMENT = Path(__file__).resolve().parents[2] / "docs/seeing-a-build.md"
FIRST, SECOND, THIRD = (n << 22 | n for n in range(1, 4))


def a_configure_run() -> bytes:
    """Two probes fail: one in a compiler, one in a subshell that runs nothing."""
    trace = TraceBuilder(cwd="/src").exec(FIRST, "/bin/sh", ["sh", "./configure"])
    trace.fork(FIRST, SECOND).exec(SECOND, "/usr/bin/cc", ["cc", "conftest.c"])
    trace.use(SECOND, "/src/conftest.c").usage(SECOND, 700, 300).exit(SECOND, 1)
    trace.fork(FIRST, THIRD).usage(THIRD, 40, 2).exit(THIRD, 1)
    return trace.usage(FIRST, 900, 100).exit(FIRST).trace()


def programs_in_one_process() -> bytes:
    """env executes sh, which executes a compiler: it alone has failed."""
    trace = TraceBuilder(cwd="/src").exec(FIRST, "/usr/bin/make", ["make"])
    trace.fork(FIRST, SECOND).exec(SECOND, "/usr/bin/env", ["env", "sh"])
    trace.exec(SECOND, "/bin/sh", ["sh", "-c", "exec cc"]).usage(SECOND, 5, 5)
    trace.exec(SECOND, "/usr/bin/cc", ["cc"]).usage(SECOND, 70, 7).exit(SECOND, 1)
    return trace.exit(FIRST, 2).trace()


def a_linker_with_threads() -> bytes:
    """A thread outlives the first one, and starts a program."""
    trace = TraceBuilder(cwd="/src").exec(FIRST, "/usr/bin/ld.lld", ["ld.lld"])
    trace.thread(FIRST, SECOND).fork(SECOND, THIRD).exec(THIRD, "/bin/cat", ["cat"])
    return trace.exit(THIRD, 137).exit(FIRST).use(SECOND, "/src/prog", flags=1).exit(SECOND).trace()


def an_interrupted_build() -> bytes:
    """Nothing ends, and a process was forked that never ran a program."""
    trace = TraceBuilder(cwd="/src").exec(FIRST, "/usr/bin/make", ["make"])
    trace.fork(FIRST, SECOND).exec(SECOND, "/usr/bin/cc", ["cc", "a.c"]).open(SECOND, "/src/a.c")
    return trace.fork(FIRST, THIRD).trace()


def two_roots_that_begin_late() -> bytes:
    """Processes without a parent in the trace, the first after a while."""
    story = Story()
    story.at(500).exec(FIRST, "/usr/bin/cc", ["cc"])
    story.at(700).exec(SECOND, "/usr/bin/ld", ["ld"])
    story.at(900).exit(FIRST)
    story.at(1500).exit(SECOND, 1)
    return story.builder.trace()


MADE = (
    *(two_objects_and_a_link, two_directories, a_pipeline, two_jobs_with_usage, a_configure_run),
    *(programs_in_one_process, a_linker_with_threads, an_interrupted_build),
    two_roots_that_begin_late,
)
SCRIPT = "(exit 3); sh -c 'exit 1'; cat x | cat > y; exec sh -c 'kill -9 $$' || :"


@pytest.fixture(params=[*(made.__name__ for made in MADE), "lua", "captured"])
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Directory of a processed database with its trace."""
    if request.param == "lua":
        write_lua(tmp_path)
    elif request.param == "captured":
        (tmp_path / "x").write_text("text")
        capture_database(tmp_path, ["sh", "-c", f"({SCRIPT}) & wait"], tmp_path)
    else:
        (made,) = (made for made in MADE if made.__name__ == request.param)
        database_of(tmp_path, made())
    assert cas(["pp", "-q", "--dbdir", str(tmp_path)]) == 0
    return tmp_path


@pytest.fixture
def image(build: Path) -> Image:
    """Return the database."""
    return open_database(build)


@pytest.fixture
def ask(build: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run `cas` or `etrace` on the build; returns what it prints."""

    def asked(program: Callable[[list[str]], int], *words: str) -> str:
        capsys.readouterr()
        program([*words, "--db", str(build)])
        return capsys.readouterr().out

    return asked


def read_by_top(build: Path) -> Running:
    lines = (build / TRACE).read_bytes().split(b"\n")
    running = Running()
    running.read(re.sub(rb"^0: ", b"", line) for line in lines)
    return running


def on_the_page(image: Image) -> dict[str, float]:
    return {re.sub(", at .*", "", f["word"]): f["value"] for f in pack(image).meta["figures"]}


def test_the_page_shows_them(image: Image) -> None:
    found, page = totals(image), on_the_page(image)
    assert page.pop("critical path") * page.pop("elapsed / critical path") == pytest.approx(
        found.elapsed_ns
    )
    expected: dict[str, Any] = {
        "elapsed": found.elapsed_ns, "CPU": found.cpu_ns, "processes": found.processes,
        "commands": found.commands, "failed": found.failed, "files": found.files,
        "linked modules": found.linked_modules, "compilations": found.compilations,
    }  # fmt: skip
    assert page == {word: value for word, value in expected.items() if value is not None}


def test_the_columns_of_the_page_add_up_to_them(image: Image) -> None:
    packed, found = pack(image), totals(image)
    column = {name: packed.column(f"command.{name}") for name in ("status", "program")}
    ran = [program != packed.meta["fork"] for program in column["program"]]
    assert sum(ran) == found.commands
    statuses = zip(ran, column["status"], strict=True)
    assert sum(is_run and status > 0 for is_run, status in statuses) == found.failed


def test_summary_prints_them(image: Image, ask: Ask) -> None:
    found, lines = totals(image), ask(etrace, "summary").splitlines()
    noun = "process" if found.processes == 1 else "processes"
    commands = "command" if found.commands == 1 else "commands"
    at = lines.index(  # what failed the build comes before
        f"{found.processes} {noun}, {found.commands} {commands} ({found.failed} failed),"
        f" elapsed {seconds(found.elapsed_ns)}"
        + ("" if found.cpu_ns is None else f", CPU {seconds(found.cpu_ns)}")
    )
    files = "file" if found.files == 1 else "files"
    assert (
        lines[at + 1] == f"{found.files} {files} opened: {found.read} read, {found.written} written"
    )


def test_critical_path_has_the_same_times(image: Image, ask: Ask) -> None:
    found, page = totals(image), on_the_page(image)
    record = json.loads(ask(etrace, "critical-path", "--json"))
    assert int(record["elapsed_ns"]) == found.elapsed_ns
    assert int(record["critical_path_ns"]) == page["critical path"]
    assert record["speedup_limit"] == page["elapsed / critical path"]
    head = re.sub("at (least|most) ", "", ask(etrace, "critical-path").splitlines()[0])
    assert head.endswith(f"elapsed / critical path {record['speedup_limit']:.1f}")
    predicted = json.loads(ask(etrace, "critical-path", "--what-if-jobs", "2", "--json"))
    assert int(predicted["prediction"]["traced_ns"]) == found.elapsed_ns


def test_info_and_lists_count_the_same(image: Image, ask: Ask) -> None:
    found, counts = totals(image), json.loads(ask(cas, "info", "counts", "--json"))
    names = ("processes", "execs_commands", "execs_failed", "opens", "paths")
    values = (found.processes, found.commands, found.failed, found.opens, found.files)
    assert tuple(counts[name] for name in names) == values
    assert counts["linked_paths"] == found.linked_modules
    assert counts["compiled"] == found.compilations
    assert int(ask(cas, "commands", "-l")) == found.commands
    assert int(ask(cas, "linked-modules", "-l")) == found.linked_modules


def test_top_counts_what_failed_and_the_time_by_the_same_rule(build: Path, image: Image) -> None:
    found, running = totals(image), read_by_top(build)
    assert running.n_failed == found.failed
    assert running.now_ns - running.began_ns == found.elapsed_ns


def test_the_document_says_what_the_words_mean() -> None:
    text = DOCUMENT.read_text()
    for word, meaning in MEANINGS.items():
        assert f"| {word} | {meaning} |" in text


def test_a_build_of_known_figures(tmp_path: Path) -> None:
    image = database_of(tmp_path, programs_in_one_process())
    found = totals(image)
    assert found == Totals(
        elapsed_ns=found.elapsed_ns, cpu_ns=77, processes=2, commands=4, failed=2,
        files=0, read=0, written=0, opens=0, linked_modules=None, compilations=None,
    )  # fmt: skip
