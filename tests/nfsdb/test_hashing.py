# SPDX-License-Identifier: Apache-2.0
"""Hashes are those of sha256sum and git; only regular files are opened; nothing waits."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import fuse
import pytest
from backends import need_root, need_tool

from etrace.nfsdb.hash_records import Hashed, State
from etrace.nfsdb.hashing import PIECE_BYTES, TICK_NS, Pool, inode_of

PATIENCE_S = 20
NOBODY = 65534


def hashed(
    *paths: str | bytes | Path, pool: Pool | None = None, is_program: bool = True
) -> list[Hashed]:
    """Return what is found at paths, in their order."""
    pool = pool or Pool(2)
    names = [os.fsencode(path) for path in paths]
    for name in names:
        pool.add(name, is_program=is_program)
    found = {}
    while pool.n_left:
        answer = pool.take(PATIENCE_S)
        assert answer is not None, "a thread waits"
        found[answer[0]] = answer[1]
    return [found[name] for name in names]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def by_tools(path: bytes) -> tuple[str, str]:
    """Return the digests of a file as sha256sum and git say them."""
    need_tool("git", "git")
    with open(path, "rb") as stream:  # noqa: PTH123  bytes
        sha256 = subprocess.run(["sha256sum"], stdin=stream, capture_output=True, check=True)
    with open(path, "rb") as stream:  # noqa: PTH123
        blob = subprocess.run(
            ["git", "hash-object", "--stdin", "--no-filters"],
            stdin=stream, capture_output=True, check=True,
        )  # fmt: skip
    return sha256.stdout.split()[0].decode(), blob.stdout.strip().decode()


def test_the_digests_are_those_of_sha256sum_and_git(folder: Path) -> None:
    sizes = (0, 1, 2047, 2048, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES)
    paths = [os.fsencode(folder / f"f{size}") for size in sizes]
    paths.append(os.fsencode(folder) + b"/\xff \n\xe4")
    for path, size in zip(paths, (*sizes, 7), strict=True):
        with open(path, "wb") as stream:  # noqa: PTH123  bytes
            stream.write(bytes(i % 251 for i in range(size)))
    for path, found in zip(paths, hashed(*paths), strict=True):
        assert (found.sha256, found.git_blob) == by_tools(path)
        assert found.state == State.TRACED
        assert found.inode == inode_of(os.stat(path))  # noqa: PTH116  bytes


def test_a_state_is_read_once_whatever_its_names(folder: Path) -> None:
    a = folder / "a"
    a.write_bytes(b"x" * 100_000)
    names = [a, folder / "hard", folder / "soft"]
    names[1].hardlink_to(a)
    names[2].symlink_to(a)
    pool = Pool(4)
    first = hashed(*names, pool=pool)
    assert len(set(first)) == 1
    assert (pool.n_read, pool.n_bytes) == (1, 100_000)
    assert hashed(*names, pool=pool) == first
    assert pool.n_read == 1
    a.write_bytes(b"y" * 100_000)  # the same size
    (changed,) = hashed(a, pool=pool)
    assert changed.sha256 != first[0].sha256
    assert pool.n_read == 2


def test_a_known_state_is_not_read(folder: Path) -> None:
    (folder / "a").write_bytes(b"x")
    inode = inode_of((folder / "a").stat())
    pool = Pool(1, {inode: ("s", "b")})
    assert hashed(folder / "a", pool=pool) == [Hashed(State.TRACED, inode, "s", "b")]
    assert pool.n_read == 0


@pytest.mark.parametrize("change", ["grow", "shrink", "same size", "replaced content", "touched"])
def test_a_file_that_changes_while_it_is_read_has_no_hash(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    path = folder / "a"
    path.write_bytes(b"x" * 3 * PIECE_BYTES)
    real = os.readv
    n_reads = 0

    def readv(fd: int, room: list[memoryview]) -> int:
        nonlocal n_reads
        n_reads += 1
        if n_reads == 2:
            with path.open("r+b") as stream:
                match change:
                    case "grow":
                        stream.seek(0, os.SEEK_END)
                        stream.write(b"y")
                    case "shrink":
                        stream.truncate(PIECE_BYTES)
                    case "same size":
                        stream.write(b"y")  # where it was read already
                    case "replaced content":
                        stream.write(b"y" * 3 * PIECE_BYTES)
                    case "touched":
                        os.utime(path)
        return real(fd, room)

    monkeypatch.setattr(os, "readv", readv)
    pool = Pool(1)
    (found,) = hashed(path, pool=pool)
    assert (found.state, found.sha256, found.git_blob) == (State.UNSTABLE, "", "")
    (found,) = hashed(path, pool=pool)  # it is read again, for the state was not
    assert (found.sha256, found.git_blob) == by_tools(os.fsencode(path))


def test_a_file_that_is_written_all_the_time_never_has_a_wrong_hash(folder: Path) -> None:
    path, is_over = folder / "a", threading.Event()
    path.write_bytes(b"\0" * 8)

    def write() -> None:
        number = 0
        with path.open("r+b", buffering=0) as stream:
            while not is_over.wait(0.002):
                number += 1
                os.pwrite(stream.fileno(), number.to_bytes(8, "little"), 0)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        found = [each for _ in range(5) for each in hashed(path)]
    finally:
        is_over.set()
        thread.join()
    assert {each.state for each in found} == {State.UNSTABLE}
    (last,) = hashed(path)
    assert (last.sha256, last.git_blob) == by_tools(os.fsencode(path))


def test_a_file_is_read_when_a_change_would_show_in_its_time(folder: Path) -> None:
    path = folder / "a"
    path.write_bytes(b"x")
    (found,) = hashed(path)
    assert found.inode is not None
    assert time.time_ns() - found.inode.ctime_ns > TICK_NS


def test_a_time_of_the_future_is_no_reason_to_wait(folder: Path) -> None:
    path = folder / "a"
    path.write_bytes(b"x")
    os.utime(path, (4_000_000_000, 4_000_000_000))
    assert hashed(path)[0].sha256 == by_tools(os.fsencode(path))[0]


def test_what_is_no_regular_file_of_a_disk_is_not_opened(folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    (folder / "link").symlink_to(folder / "fifo")
    (folder / "ring").symlink_to(folder / "ring")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fsencode(folder / "socket"))
        found = hashed(
            folder / "fifo", folder / "link", folder / "socket", folder, "/dev/null", "/dev/zero",
            "/dev/tty", "/proc/self/status", "/proc/kmsg", "/sys/kernel/notes", "/proc/self/mem",
        )  # fmt: skip
    assert {each.state for each in found} == {State.SPECIAL}
    assert hashed(folder / "ring")[0].state in (State.UNREADABLE, State.SPECIAL)


def test_what_is_not_there_is_gone(folder: Path) -> None:
    (folder / "file").touch()
    (folder / "dangling").symlink_to(folder / "nothing")
    found = hashed(folder / "nothing", folder / "file/below", folder / "dangling")
    assert {each.state for each in found} == {State.GONE}
    (bad,) = hashed(b"/a\0b")
    assert bad.state == State.UNREADABLE


def test_only_the_link_of_a_program_is_followed(folder: Path) -> None:
    (folder / "secret").write_text("secret")
    (folder / "a.h").symlink_to(folder / "secret")
    assert hashed(folder / "a.h", is_program=False) == [Hashed(State.SPECIAL)]
    assert hashed(folder / "a.h")[0].sha256


def test_a_directory_that_became_a_link_leads_to_no_other_file(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other/secret").write_text("secret")
    (folder / "sub").symlink_to(folder / "other")
    assert hashed(folder / "sub/secret")[0] == Hashed(State.SPECIAL)


@pytest.fixture
def dead_server(folder: Path) -> Iterator[Path]:
    with fuse.dead_server(folder / "fuse") as mount:
        yield mount


@pytest.mark.root
def test_a_dead_server_of_files_is_not_asked(folder: Path, dead_server: Path) -> None:
    (folder / "a").write_text("a")
    pool = Pool(1)
    special, fine = hashed(dead_server / "deep/file", folder / "a", pool=pool)
    assert special.state == State.SPECIAL
    assert fine.sha256


@pytest.mark.root
def test_a_server_that_is_mounted_later_is_seen(
    folder: Path, request: pytest.FixtureRequest
) -> None:
    (folder / "a").write_text("a")
    pool = Pool(1)
    assert hashed(folder / "a", pool=pool)[0].sha256
    mount = request.getfixturevalue("dead_server")
    assert hashed(mount / "file", pool=pool)[0].state == State.SPECIAL


@pytest.mark.root
def test_the_rights_are_those_of_the_process(folder: Path) -> None:
    need_root()
    secret = folder / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    for each in (folder, *folder.parents[:-1]):
        if not each.stat().st_mode & 0o001:
            each.chmod(0o711)
    child = os.fork()
    if child == 0:
        state = -1
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            state = hashed(secret)[0].state
        finally:
            os._exit(state)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == State.UNREADABLE
