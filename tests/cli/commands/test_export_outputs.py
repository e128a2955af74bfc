# SPDX-License-Identifier: Apache-2.0
"""Where `cas export` writes: over its input, pipes, devices, full disks, two at once."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import BuildTeller, write_database
from imports.access_traces import SEED
from libetrace.depend import configuration as config

from etrace.cli.main import cas, etrace
from etrace.nfsdb.store import open_database
from etrace.postprocess import run

CAS = str(Path(sys.executable).parent / "cas")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    recorded = BuildTeller().run(10, "/usr/bin/gcc", "gcc -c a.c", writes=["/src/a.o"]).end(10)
    place = tmp_path / "database"
    place.mkdir()
    (place / ".nfsdb").write_bytes(recorded.trace())
    assert cas(["parse", "--dbdir", str(place)]) == 0
    run.postprocess(open_database(place), config.load(place), ["compilations"])
    return place


def words(database: Path, output: Path | str, *more: str) -> list[str]:
    return ["export", "compile_commands", "--dbdir", str(database), "-o", str(output), *more]


@pytest.mark.parametrize("name", [".nfsdb.img", ".nfsdb", "link", "hard"])
def test_the_output_is_not_what_it_is_made_of(
    name: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (database / "link").symlink_to(".nfsdb.img")
    (database / "hard").hardlink_to(database / ".nfsdb")
    before = {path.name: path.read_bytes() for path in database.iterdir()}
    assert cas(words(database, database / name)) == 2
    assert f"{database / name}: the output would replace {database}/.nfsdb" in (
        capsys.readouterr().err
    )
    assert {path.name: path.read_bytes() for path in database.iterdir()} == before


def test_what_is_kept_for_an_export_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t").write_bytes(SEED)
    assert etrace(["import", "file-access-trace", str(tmp_path / "t"), "-o", str(tmp_path)]) == 0
    assert cas(["parse", "--dbdir", str(tmp_path)]) == 0
    kept = tmp_path / ".nfsdb.accesses"
    recorded = ["export", "file-access-trace", "--dbdir", str(tmp_path), "-o", str(kept)]
    assert cas(recorded) == 2
    assert "the output would replace" in capsys.readouterr().err
    assert kept.read_bytes().endswith(SEED)


@pytest.mark.parametrize("option", ["--append", "--update"])
def test_what_has_no_entries_is_not_waited_for(
    option: str, database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe has no other end here, and /dev/zero has no end at all."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/stdin")):
        assert cas(words(database, path, option)) == 2
        assert f"{path}: not a regular file, it has no entries to keep" in capsys.readouterr().err


def test_two_outputs_are_two_files(database: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    assert cas(words(database, output, "--links", str(tmp_path / "." / "out.json"))) == 2
    assert not output.exists()


def test_programs_that_append_at_once_lose_nothing(database: Path, tmp_path: Path) -> None:
    output = tmp_path / "all.json"
    names = [f"f{n}.c" for n in range(4)]
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    running = []
    for name in names:
        recorded = (
            BuildTeller().run(10, "/usr/bin/gcc", f"gcc -c {name}", writes=["/src/x.o"]).end(10)
        )
        place = tmp_path / name
        place.mkdir()
        run.postprocess(
            write_database(place, recorded.trace()), config.load(database), ["compilations"]
        )
        command = [CAS, *words(place, output, "--append")]
        running.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    for each in running:  # all of them wait
        assert each.stderr is not None
        line = each.stderr.readline()
        assert line == f"cas: waiting for a program that has locked {tmp_path}\n"
    os.close(folder)
    assert [each.wait() for each in running] == [0] * len(names)
    for each in running:
        assert each.stderr is not None
        each.stderr.close()
    files = [entry["file"] for entry in json.loads(output.read_bytes())]
    assert sorted(files) == [f"/src/{name}" for name in names]


@pytest.mark.parametrize("kind", ["compile_commands", "build-spec", "file-access-trace", "json"])
def test_a_full_disk_is_named_with_the_file(
    kind: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cas(["export", kind, "--dbdir", str(database), "-o", "/dev/full"]) == 2
    assert "cas: error: /dev/full: No space left on device\n" in capsys.readouterr().err


def test_standard_output_by_its_name_may_be_a_pipe(database: Path) -> None:
    done = subprocess.run(
        [CAS, *words(database, "/dev/stdout")], stdout=subprocess.PIPE, check=True
    )
    assert [entry["file"] for entry in json.loads(done.stdout)] == ["/src/a.c"]


def test_a_process_number_of_any_length(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python refuses to convert more than 4300 digits, by a ValueError."""
    out = str(tmp_path / "out")
    recorded = ["export", "file-access-trace", "--dbdir", str(database), "-o", out, "--root"]
    assert cas([*recorded, "9" * 5000]) == 2
    assert "is not a process of the database" in capsys.readouterr().err
