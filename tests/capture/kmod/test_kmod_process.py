# SPDX-License-Identifier: Apache-2.0
"""Which process is the calling shell, and saying a process from its successor."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from backends import need_root

from etrace.capture.kmod import run
from etrace.capture.kmod.system import owner, process
from etrace.capture.kmod.system.owner import Owner
from etrace.errors import UsageError

ROOT = Path(__file__).parents[3]
ASK = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r});"
    "from etrace.capture.kmod.system import process; print(process.calling_shell())"
)
LAUNCHER = """\
#!{python} -SE
import subprocess, sys
sys.exit(subprocess.call(sys.argv[1:]))
"""


def launcher(directory: Path, name: str) -> str:
    """A program of that name that runs its arguments as a child and waits, as sudo does."""
    path = directory / name
    path.write_text(LAUNCHER.format(python=sys.executable))
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("between", [[], ["sudo"], ["sudo", "sudo"], ["doas"], ["sudo", "su"]])
def test_the_shell_is_found_through_what_gives_rights(tmp_path: Path, between: list[str]) -> None:
    programs = [launcher(tmp_path, name) for name in between]
    command = " ".join([*programs, sys.executable, "-c", '"$1"'])
    done = subprocess.run(
        ["sh", "-c", f"echo $$; {command}; :", "sh", ASK],
        capture_output=True,
        text=True,
        check=True,
    )
    shell, found = done.stdout.split()
    assert found == shell


def test_a_process_is_not_its_successor() -> None:
    me = process.identify(os.getpid())
    assert me is not None
    assert me.is_alive()
    assert not process.Process(me.pid, me.start_ticks + 1).is_alive()
    assert process.Process(me.pid, me.start_ticks + 1).open() is None
    fd = me.open()
    assert fd is not None
    os.close(fd)


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen(["true"])
    found = process.identify(child.pid)
    assert found is not None
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not found.is_alive()
    child.wait()


def test_a_name_with_brackets_and_blanks_is_read_past(tmp_path: Path) -> None:
    odd = tmp_path / "a) R 1 (b"
    shutil.copy("/bin/sleep", odd)
    with subprocess.Popen([odd, "10"]) as child:
        found = process.identify(child.pid)
        assert found is not None
        assert found.is_alive()
        assert process.parent(child.pid) == os.getpid()
        child.kill()


def test_survivors_are_those_without_an_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, alive, thread = 1 << 22 | 10, 2 << 22 | 11, 3 << 22 | 12
    trace = (
        f"INITCWD=/\n{dead},0,1,0!SchedFork|pid={alive}\n{dead},0,1,0!SysClone|flags=17\n"
        f"{dead},0,1,0!SchedFork|pid={thread}\n{thread},0,1,0!Exit|status=0\n"
        f"{dead},0,1,5!FN|/tmp/x,SchedFork|pid=9\n{dead},0,1,0!Exit|status=0\n"
    ).encode()
    path = tmp_path / ".nfsdb"
    path.write_bytes(trace)
    for size in (7, 64, 1 << 20):
        monkeypatch.setattr(run, "PIECE_BYTES", size)
        assert run.alive_upids(path) == {alive}


def test_survivors_are_not_looked_for_in_what_is_not_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".nfsdb")
    assert run.survivors(tmp_path / ".nfsdb") == []


def test_a_name_does_nothing_to_a_terminal(tmp_path: Path) -> None:
    odd = tmp_path / "\x1b]0;owned\x07"
    shutil.copy("/bin/sleep", odd)
    with subprocess.Popen([odd, "10"]) as child:
        while (name := process.name(child.pid)) == process.name(os.getpid()):
            time.sleep(0.01)  # it is named a little after Popen() has seen it execute
        child.kill()
    assert name == "?]0;owned?"


def test_survivors_are_named(tmp_path: Path) -> None:
    trace = tmp_path / ".nfsdb"
    trace.write_text(f"5,0,1,0!SchedFork|pid={1 << 22 | os.getpid()}\n")
    assert run.survivors(trace) == [f"'{process.name(os.getpid())}' ({os.getpid()})"]


def test_the_user_of_sudo_owns_the_files() -> None:
    need_root()
    found = owner.invoking({"SUDO_UID": "65534", "SUDO_GID": "0"})
    assert (found.uid, found.gid) == (65534, 65534)  # the group of the account, not of a variable
    assert 65534 in found.groups
    assert owner.invoking({"DOAS_USER": "nobody"}) == found
    assert owner.invoking({}) == owner.myself()


@pytest.mark.parametrize(
    "environment", [{"SUDO_UID": "x"}, {"SUDO_UID": "-5"}, {"DOAS_USER": "no such"}]
)
def test_a_user_who_does_not_exist_is_an_error(environment: dict[str, str]) -> None:
    need_root()
    with pytest.raises(UsageError, match="no such user"):
        owner.invoking(environment)


def test_rights_are_given_away_and_come_back(tmp_path: Path) -> None:
    need_root()
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    with owner.acting_as(Owner(65534, 65534, (65534,))):
        assert os.getgroups() == [65534]
        with pytest.raises(PermissionError):
            secret.open("rb")
    assert os.geteuid() == 0
    secret.open("rb").close()
