# SPDX-License-Identifier: Apache-2.0
"""No system call of a program in the sandbox changes, runs or reaches anything."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import boxes
import pytest
from backends import need_root
from once import made_once

SOURCE = Path(__file__).with_name("attempts.c")
#: what programs that may execute others may do besides
RUN = {"run_true", "run_shell"}
RUN_ALL = {*RUN, "make_code"}
#: attempts that even an ordinary process cannot make everywhere: another kernel, file system, tty
OF_SOME = {
    "fchmodat2_", "setxattrat_", "inode_flags", "inode_attributes", "removexattr_", "setxattr_",
    "lsetxattr_", "fsetxattr_", "lease", "bpf_", "perf", "userfaultfd_", "io_uring", "log_",
    "terminal", "call_of_x32", "call_of_i386", "user_namespace", "mount_", "chroot_", "connected",
    "queue", "fanotify", "keyring", "kcmp_",
}  # fmt: skip


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(folder: Path) -> None:
        words: list[str | Path] = [
            "gcc",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            SOURCE,
            "-o",
            folder / "attempts",
        ]
        subprocess.run([*words, "-lrt"], check=True)

    return made_once(tmp_path_factory, "attempts", make) / "attempts"


@contextlib.contextmanager
def field(folder: Path, user: int | None) -> Iterator[tuple[Path, int]]:
    """The files of the attempts, and a process of the same user."""
    place = folder / "place"
    place.mkdir()
    for name in ("file", "gone", "renamed", "left", "right"):
        (place / name).write_text("content\n")
    (place / "folder").mkdir()
    with contextlib.suppress(OSError):
        os.setxattr(place / "file", "user.own", b"1")
    server, inbox = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with contextlib.chdir(place):
        server.bind("socket")
        inbox.bind("inbox")
    server.listen()
    if user is not None:
        for path in (place, *place.rglob("*")):
            os.chown(path, user, user)
    sleeper = subprocess.Popen(["sleep", "1000"], user=user, group=user)
    try:
        yield place, sleeper.pid
    finally:
        sleeper.kill()
        sleeper.wait()
        server.close()
        inbox.close()


def state(place: Path) -> dict[str, tuple[object, ...]]:
    """What the files are."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (place, *sorted(place.rglob("*"))):
        it = path.lstat()
        text = path.read_bytes() if path.is_file() else b""
        names = os.listxattr(path) if path.is_file() else []
        found[path.name] = it.st_mode, it.st_uid, it.st_size, it.st_mtime_ns, it.st_ino, text, names
    return found


WHO = [pytest.param(boxes.NOBODY, id="user"), pytest.param(None, id="root")]


@pytest.mark.root
@pytest.mark.parametrize("more", [[], ["--executes"], ["--executes-below", "/usr/bin"]])
@pytest.mark.parametrize("walls", [[], ["--no-namespaces"]])
@pytest.mark.parametrize("user", WHO)
def test_nothing_is_changed_and_nobody_reached(
    attempts: Path, open_folder: Path, user: int | None, walls: list[str], more: list[str]
) -> None:
    need_root()
    sandbox = Path(shutil.copy(boxes.SANDBOX, open_folder))
    become = [] if user else ["--user", f"{boxes.NOBODY}:{boxes.NOBODY}", "--reads-all"]
    with field(open_folder, user) as (place, other):
        before = state(place)
        words = [str(place), str(other)]
        done = boxes.run(sandbox, attempts, words, [*become, *walls, *more], user=user)
        assert state(place) == before
    allowed = {"end", *(RUN_ALL if "--executes" in more else RUN if more else ())}
    if user is None:
        allowed.add("map_own_code")  # the file is root's
    assert done.report == "denied /dev/ptmx\nexit 0", done
    assert set(done.stdout.split()) <= allowed
    assert "end" in done.stdout


@pytest.mark.root
def test_outside_of_the_sandbox_the_attempts_succeed(attempts: Path, open_folder: Path) -> None:
    need_root()
    program = Path(shutil.copy(attempts, open_folder))
    with field(open_folder, boxes.NOBODY) as (place, other):
        before = state(place)
        done = subprocess.run(
            [program, place, str(other)], user=boxes.NOBODY, group=boxes.NOBODY, extra_groups=[],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert state(place) != before
    tried = set(
        SOURCE.read_text()
        .partition("attempts[] = {")[2]
        .partition("};")[0]
        .replace(",", " ")
        .split()
    )
    names = {word[4:-1] for word in tried if word.startswith("ROW(")}
    assert len(names) > 75
    assert names - set(done.stdout.split()) - OF_SOME == set()
