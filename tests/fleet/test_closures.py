# SPDX-License-Identifier: Apache-2.0
"""Closures in many databases: equal by processes and by Spark, with damage and killed workers."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fleets
import pytest
from fleets import about
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

from etrace.cli import main
from etrace.fleet.closures import Row, by_processes, by_spark, closure
from etrace.fleet.dataset import Dataset
from etrace.fleet.duck import Duck
from etrace.fleet.questions import questions
from etrace.query.dependencies import deps

N_DATABASES = 12


@pytest.fixture(scope="module")
def databases(lua: Image, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return databases of one build; the fourth is damaged, the fifth does not exist."""
    folder = tmp_path_factory.mktemp("many")
    places = [folder / f"build{n:02d}" for n in range(N_DATABASES)]
    for place in places:
        shutil.copytree(lua.path.parent, place)
    image = places[3] / ".nfsdb.img"
    image.write_bytes(image.read_bytes()[:5000])
    shutil.rmtree(places[4])
    return list(map(str, places))


def check(rows: list[Row], lua: Image, databases: list[str]) -> None:
    walked = deps(Dependencies(lua), [b"/tmp/b/lua-5.4.4/src/lua"], Rules())
    wanted = [path.decode().removeprefix("/tmp/b/lua-5.4.4/") for path in walked]
    for number, database in enumerate(databases):
        own = [row for row in rows if row[0] == database]
        if number in (3, 4):
            assert [row[1] for row in own] == [None]
            assert database in str(own[0][2])
        else:
            assert sorted(str(row[1]) for row in own) == sorted(wanted)
            assert {row[2] for row in own} == {None}


def test_processes_answer_for_many_databases(lua: Image, databases: list[str]) -> None:
    check(list(by_processes(databases[:6], "src/lua", 2)), lua, databases[:6])


def test_a_file_that_a_build_has_not_is_an_error_of_it(lua: Image) -> None:
    ((_, path, error),) = closure(str(lua.path.parent), "src/nothing")
    assert path is None
    assert "src/nothing" in str(error)


def test_the_command_answers_and_names_what_failed(
    databases: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fleet", "closures", "src/lua"]
    assert main.etrace([*words, *databases[2:4], "--csv"]) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("database,path,error\n")
    assert f"{databases[2]},src/lvm.h,\n" in captured.out
    assert "1 database of 2 not answered" in captured.err
    assert main.etrace([*words, databases[3]]) == 1
    assert main.etrace([*words, databases[0]]) == 0


# ---- Spark


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Return a session of Spark with two workers, each a process of its own."""
    from etrace.fleet.spark import session

    started = session("local-cluster[2,1,1024]", {"spark.executor.memory": "1g"})
    yield started
    started.stop()


def executors(root: int) -> list[int]:
    """Return the executors below a process: Java that our Spark started."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            waiting += map(int, task.read_text().split())
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
            found.append(pid)
    return found


@pytest.mark.long("a session of Spark takes half a minute and 450 MB of packages")
def test_a_job_answers_when_a_worker_is_killed(
    cluster: Any, lua: Image, databases: list[str]
) -> None:
    first = list(by_spark(cluster, databases, "src/lua"))
    check(first, lua, databases)
    found: list[Row] = []
    job = threading.Thread(target=lambda: found.extend(by_spark(cluster, databases, "src/lua")))
    job.start()
    time.sleep(1)
    victims = executors(os.getpid())
    assert victims
    os.kill(victims[0], 9)
    job.join()
    assert found == first
    assert sorted(first, key=str) == sorted(by_processes(databases, "src/lua", 2), key=str)


@pytest.mark.long("a session of Spark takes half a minute and 450 MB of packages")
def test_both_engines_answer_alike(cluster: Any, lua: Image, tmp_path: Path) -> None:
    from etrace.fleet.spark import Spark

    builds = [about(str(n), n, commit=f"c{n}", team="ab"[n % 2]) for n in range(1, 7)]
    dataset: Dataset = fleets.fleet_of(tmp_path / "f", lua, *builds)
    spark = Spark(dataset, running=cluster)
    for own in questions().values():
        values = {name: fleets.VALUES[name] for name, _ in own.parameters}
        one = Duck(dataset).ask(own.for_duckdb, values, is_trusted=True)
        other = spark.ask(own.sql, values)
        assert list(one.columns) == list(other.columns), own.name
        assert list(one.rows) == list(other.rows), own.name
