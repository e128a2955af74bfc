# SPDX-License-Identifier: Apache-2.0
"""No program is run on the word of a database that another user made."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest
from compiling import BuildTeller, write_database
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.nfsdb.owned import check_owner
from etrace.nfsdb.store import open_database

CAS = Path(sysconfig.get_path("scripts")) / "cas"
STRANGER = 12345


@pytest.fixture
def database(tmp_path: Path) -> Image:
    trace = BuildTeller().gcc(2, "gcc -c x.c", "/src/x.c", "/src/x.o").trace()
    (tmp_path / ".nfsdb").write_bytes(trace)
    return write_database(tmp_path, trace)


def test_a_database_of_ones_own_is_trusted(database: Image) -> None:
    check_owner(database)


@pytest.mark.root
@pytest.mark.parametrize("name", [".nfsdb.img", ".nfsdb", ".nfsdb.json", ".nfsdb.env.json", "."])
def test_a_database_of_another_user_is_not(database: Image, name: str) -> None:
    path = database.path.parent / name
    os.chown(path, STRANGER, -1)
    with pytest.raises(EtraceError, match="belongs to another user"):
        check_owner(database)


@pytest.mark.root
def test_a_trace_elsewhere_counts_too(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "mine").mkdir()
    trace = tmp_path / "theirs" / ".nfsdb"
    trace.write_bytes(BuildTeller().gcc(2, "gcc -c x.c", "/src/x.c", "/src/x.o").trace())
    subprocess.run([CAS, "parse", "-q", "--dbdir", tmp_path / "mine", trace], check=True)
    image = open_database(tmp_path / "mine")
    check_owner(image)
    os.chown(trace, STRANGER, -1)
    with pytest.raises(EtraceError, match=f"{trace} belongs to another user"):
        check_owner(image)


def test_an_image_that_was_replaced_is_not_trusted(database: Image) -> None:
    again = database.path.with_name("again")
    again.write_bytes(database.path.read_bytes())
    again.replace(database.path)
    with pytest.raises(EtraceError, match="changed meanwhile"):
        check_owner(database)


def attack(folder: Path) -> Path:
    """A database in which perl ran as gcc; returns a file that such a perl would make."""
    marker, script = folder / "executed", folder / "script"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    trace = (
        BuildTeller()
        .run(2, "/usr/bin/perl", ["gcc", "-isysroot", f"{script}", "-c", "x.c"])
        .end(2)
        .run(3, "/usr/bin/gcc", ["gcc", "-c", "x.c", "-B", f"{folder}", f"-specs={script}"])
        .end(3)
        .trace()
    )
    (folder / ".nfsdb").write_bytes(trace)
    write_database(folder, trace)
    return marker


@pytest.mark.parametrize("options", [[], ["--ask-compilers"]])
def test_a_program_under_the_name_of_a_compiler_is_never_run(
    tmp_path: Path, options: list[str]
) -> None:
    marker = attack(tmp_path)
    done = subprocess.run(
        [CAS, "pp", "--dbdir", tmp_path, *options], capture_output=True, text=True, check=True
    )
    assert not marker.exists()
    assert "perl " not in done.stderr.replace("does not run /usr/bin/perl: ", "")
    runs = [line for line in done.stderr.splitlines() if line.startswith("cas pp: runs")]
    expected = f"cas pp: runs {os.path.realpath('/usr/bin/gcc')} -E -v -x c /dev/null"
    assert runs == ([expected] if options else [])


def test_without_the_option_nothing_is_run_and_what_lacks_is_said(tmp_path: Path) -> None:
    attack(tmp_path)
    done = subprocess.run(
        [CAS, "pp", "--dbdir", tmp_path], capture_output=True, text=True, check=True
    )
    expected = (
        "cas pp: the trace does not show the built-in include directories of /usr/bin/gcc; "
        "to run those that etrace trusts: cas pp --ask-compilers"
    )
    assert [line for line in done.stderr.splitlines() if "--ask-compilers" in line] == [expected]
