# SPDX-License-Identifier: Apache-2.0
"""One build with threads: every command counts the same processes and programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from backends import capture, need_tool
from databases import parse_database
from libetrace.depend.execution_facts import find_thread_owners
from libetrace.image.file import Image

from etrace.cli.main import cas, etrace
from etrace.cli.top.running import Running
from etrace.query.facts import stat
from etrace.query.rows.commands import Commands
from etrace.query.rows.labels import Labels
from etrace.query.sql import ask
from etrace.query.summary import summarise
from etrace.timeline.slices import Lanes, Slice, slices
from etrace.timing.critical_path import find_critical_path
from etrace.timing.processes import Processes
from etrace.timing.what_if import predict

#: two threads at once; the second starts a program, and ends after it
SOURCE = """
#include <pthread.h>
#include <stdlib.h>
static void *start(void *command) { return command ? (void *)(long)system(command) : NULL; }
int main(void)
{
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, start, NULL);
	pthread_create(&threads[1], NULL, start, "exec /bin/true");
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
"""
#: sh, workers, sh and true in one process
N_PROCESSES, N_PROGRAMS = 3, 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the database."""
    made = tmp_path_factory.mktemp("threads")
    gcc = need_tool("gcc", "gcc")
    (made / "workers.c").write_text(SOURCE)
    command = [gcc, "-pthread", "-o", "workers", "workers.c"]
    assert capture(command, made, trace=made / "gcc").status == 0
    command, options = ["sh", "-c", "./workers; exit 0"], ("--stats", str(made / "stats"))
    captured = capture(command, made, options=options, trace=made / ".nfsdb")
    assert captured.status == 0, captured.stderr.decode()
    return made


@pytest.fixture(scope="module")
def image(folder: Path) -> Image:
    """Return the database."""
    return parse_database(folder)


def test_the_capture_and_the_parser_count_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = json.loads((folder / "stats").read_text())
    assert (stats["processes"], stats["executions"]) == (N_PROCESSES, N_PROGRAMS)
    assert cas(["parse", "--force", "--dbdir", str(folder)]) == 0
    line = capsys.readouterr().out
    assert f": {N_PROCESSES} processes, {N_PROGRAMS} commands, " in line


def test_all_queries_count_the_same(image: Image) -> None:
    counts, page = stat(image), summarise(image)
    assert (counts["processes"], counts["execs_commands"]) == (N_PROCESSES, N_PROGRAMS)
    assert (page.totals.processes, page.totals.commands) == (N_PROCESSES, N_PROGRAMS)
    assert len(Processes(image)) == N_PROCESSES
    (rows,) = ask(image, "SELECT count(DISTINCT upid) FROM executions WHERE thread_of IS NULL").rows
    assert rows == (N_PROCESSES,)


def test_no_list_shows_a_thread(
    image: Image, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["sh -c ./workers; exit 0", "workers", "sh -c exec /bin/true", "true"]
    assert [each.name for each in slices(image, Lanes.TREE)] == names
    assert [each.name for each in slices(image, Lanes.PACKED)] == names[2:]
    commands = Commands(image)
    assert len(commands.rows) == N_PROGRAMS
    assert [commands.parent(number) for number in range(2)] == [-1, 0]
    assert commands.parent(2) == commands.parent(3) == 1
    assert cas(["tree", "--dbdir", str(folder)]) == 0
    shown = capsys.readouterr().out.replace(" -c -- ", " -c ")  # system() of glibc 2.41
    assert shown.splitlines() == [
        "sh -c './workers; exit 0'", "  ./workers", "    sh -c 'exec /bin/true'", "    /bin/true",
    ]  # fmt: skip


def test_a_thread_with_calls_has_a_slice_on_a_lane_of_its_own(image: Image) -> None:
    owners = find_thread_owners(image)
    thread = next(row for row, owner in enumerate(owners) if row != owner)
    begin = image["executions"]["start_ns"][thread]
    calls = {thread: [Slice(0, begin, begin + 1, "start()", "xray")]}
    found = list(slices(image, Lanes.TREE, lambda row: calls.get(row, ())))
    lane = next(each.lane for each in found if each.name == "workers (thread)")
    assert [each.name for each in found if each.lane == lane] == ["workers (thread)", "start()"]


def test_what_a_thread_opens_is_its_process_s(image: Image) -> None:
    owners, commands = find_thread_owners(image), Commands(image)
    threads = [row for row, owner in enumerate(owners) if row != owner]
    assert len(threads) == 2
    assert {commands.rows[commands.of(row)] for row in threads} == {owners[threads[0]]}


def test_the_critical_path_has_the_cpu_time_of_all(
    image: Image, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = predict(image, {}, 2)
    assert (found.n_executions, found.n_unknown) == (N_PROGRAMS, 0)
    assert etrace(["critical-path", "--all", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "(forked)" not in text
    own = {
        Labels(image).program(each.execution): each.n for each in find_critical_path(image).inside
    }
    assert own["workers"] == 3  # its head line says so only where that is a tenth of the path


def test_a_build_that_runs_shows_no_thread(folder: Path) -> None:
    running = Running()
    for line in (folder / ".nfsdb").read_bytes().splitlines():
        running.read([line])
        labels = [running.label(process) for _, process in running.tree()]
        assert "workers (forked)" not in labels[:-1]
        assert len(running.processes) <= N_PROCESSES
    assert (running.processes, running.n_finished) == ({}, N_PROCESSES)
