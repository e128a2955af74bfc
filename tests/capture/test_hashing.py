# SPDX-License-Identifier: Apache-2.0
"""`etrace run --hash` hashes what a build reads and writes, beside it and with its rights."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from backends import names_without_module, need_root, need_tool
from builders import CLONE_FILES, O_CREAT, O_PATH, O_RDWR, O_WRONLY, TraceBuilder

from etrace.capture.hashing import Hashing, Reader, open_older, read_older
from etrace.nfsdb import hash_records
from etrace.nfsdb.hash_records import Hashed, Inode, State

ETRACE = Path(sysconfig.get_path("scripts")) / "etrace"
CAS = ETRACE.with_name("cas")
NOBODY = 65534
ONE, TWO = 1 << 22 | 1, 2 << 22 | 2


def run(folder: Path, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Trace a shell script in `folder`; the trace is beside it."""
    return subprocess.run(
        [ETRACE, "run", "-q", "--hash", "-o", folder.parent, *options, "--", "sh", "-ec", script],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def records(where: Path) -> dict[bytes, list[Hashed]]:
    """Return what was recorded of each file, in order."""
    found: dict[bytes, list[Hashed]] = {}
    for path, each in hash_records.read((where / ".nfsdb.hashes").read_bytes()):
        found.setdefault(path, []).append(each)
    return found


def is_of(found: Hashed, content: bytes) -> bool:
    """Return whether hashes are those of a content."""
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return found.state == State.TRACED and (found.sha256, found.git_blob) == (
        hashlib.sha256(content).hexdigest(), blob.hexdigest(),
    )  # fmt: skip


# ---- lines ----


def test_every_use_of_a_file_is_read_however_lines_are_cut() -> None:
    long, odd = "/" + "x" * 2000, b"/with\nnewline\n\n\xff"
    t = TraceBuilder(cwd="/src").exec(ONE, "/bin/cc", ["cc"])
    t.fork(ONE, TWO, CLONE_FILES)
    t.open(ONE, "/a.c").open(TWO, long, flags=O_WRONLY | O_CREAT).open(ONE, odd, flags=O_RDWR)
    t.open(ONE, "/only/a/name", flags=O_PATH).open(ONE, "/dir", flags=os.O_DIRECTORY)
    t.rename(ONE, "/from", long).link(TWO, "/a.c", odd).exit(TWO).exit(ONE)
    trace = t.trace()
    one, two = b"%d" % ONE, b"%d" % TWO
    expected = [
        (one, "program", b"/bin/cc"), (one, "program", b"/bin/cc"), (one, "read", b"/a.c"),
        (two, "write", long.encode()), (one, "write", odd), (one, "move", long.encode()),
        (two, "move", odd), (two, "exit", b""), (one, "exit", b""),
    ]  # fmt: skip
    for size in (1, 7, 100, len(trace)):
        reader = Reader()
        pieces = [trace[at : at + size] for at in range(0, len(trace), size)]
        found = [event for piece in pieces for event in reader.feed(piece)]
        found += reader.finish()
        for upid in (one, two):  # those of one upid are in order
            assert [e for e in found if e[0] == upid] == [e for e in expected if e[0] == upid]


# ---- what is hashed when ----


def test_a_file_is_hashed_when_all_who_write_it_have_ended(folder: Path) -> None:
    path = folder / "out"
    name = os.fsencode(path)
    path.write_text("one")
    hashing = Hashing()
    hashing.take(b"1", "write", name)
    hashing.take(b"2", "write", name)
    hashing.take(b"3", "read", name)
    hashing.take(b"1", "exit", b"")
    assert hashing.pool.n_left == 0
    path.write_text("two")
    hashing.take(b"2", "exit", b"")
    hashing.look_again()
    ((_, found),) = hashing.records
    assert is_of(found, b"two")
    assert hashing.pool.n_read == 1


def test_what_is_in_another_state_at_the_end_is_hashed_again(folder: Path) -> None:
    a, b, gone = folder / "a", folder / "b", folder / "gone"
    for path in (a, b, gone):
        path.write_text("first")
    hashing = Hashing()
    for path in (a, b, gone):
        hashing.take(b"1", "read", os.fsencode(path))
    hashing.wait()
    a.write_text("second")
    gone.unlink()
    hashing.look_again()
    found: dict[bytes, list[Hashed]] = {}
    for name, each in hashing.records:
        found.setdefault(name, []).append(each)
    first, second = found[os.fsencode(a)]
    assert is_of(first, b"first")
    assert is_of(second, b"second")
    assert len(found[os.fsencode(b)]) == 1
    (kept,) = found[os.fsencode(gone)]
    assert is_of(kept, b"first")


# ---- whole captures ----


@pytest.mark.parametrize("backend", names_without_module())
def test_a_compilation_has_all_its_hashes(folder: Path, backend: str) -> None:
    compiler = need_tool("gcc", "gcc")
    (folder / "a.h").write_text("#define A 1\n")
    (folder / "a.c").write_text('#include "a.h"\nint main(void) { return A - 1; }\n')
    done = run(folder, "gcc -o a a.c && ./a", "--backend", backend)
    assert done.returncode == 0, done.stderr
    found = records(folder.parent)
    for name in ("a.h", "a.c", "a"):
        assert is_of(found[os.fsencode(folder / name)][-1], (folder / name).read_bytes())
    if backend != "preload":
        binary = Path(compiler).parent.resolve() / "gcc"
        assert is_of(found[os.fsencode(binary)][-1], binary.read_bytes())
    temporary = [p for p in found if p.endswith(b".s") and not os.path.exists(p)]  # noqa: PTH110
    assert all(each.state in (State.GONE, State.TRACED) for p in temporary for each in found[p])
    subprocess.run([CAS, "parse", "-q"], cwd=folder.parent, check=True)
    listed = subprocess.run(
        [CAS, "refs", "--hash", folder / "a.c"],
        cwd=folder.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    summed = subprocess.run(
        ["sha256sum", folder / "a.c"], capture_output=True, text=True, check=True
    )
    assert listed.stdout == summed.stdout


def test_a_file_that_is_written_twice_has_the_last_hash(folder: Path) -> None:
    done = run(folder, "sh -c 'echo 1 > out'; sleep 0.3; cat out; sh -c 'echo 22 > out'; cat out")
    assert done.returncode == 0, done.stderr
    found = records(folder.parent)[os.fsencode(folder / "out")]
    assert is_of(found[-1], b"22\n")


def test_names_are_bytes_and_temporary_files_are_gone(folder: Path) -> None:
    name = os.fsencode(folder) + b"/\xff\n\xe4"
    with open(name, "wb") as stream:  # noqa: PTH123  bytes
        stream.write(b"odd")
    done = run(folder, "cat ./*; echo x > temporary; rm temporary; echo y > b; mv b c")
    assert done.returncode == 0, done.stderr
    found = records(folder.parent)
    assert is_of(found[name][-1], b"odd")
    assert {each.state for each in found[os.fsencode(folder / "temporary")]} == {State.GONE}
    assert is_of(found[os.fsencode(folder / "c")][-1], b"y\n")


def test_a_build_with_pipes_and_devices_is_not_waited_for(folder: Path) -> None:
    script = """
    mkfifo fifo
    echo x > fifo &
    cat fifo /proc/self/status > out
    head -c 10 /dev/zero > zero
    echo > /dev/null
    """
    done = run(folder, script)
    assert done.returncode == 0, done.stderr
    found = records(folder.parent)
    assert {each.state for each in found[os.fsencode(folder / "fifo")]} == {State.SPECIAL}
    assert is_of(found[os.fsencode(folder / "zero")][-1], bytes(10))
    others = [
        each for path in found if path.startswith((b"/proc/", b"/dev/")) for each in found[path]
    ]
    assert {each.state for each in others} <= {State.SPECIAL, State.GONE}


def test_the_command_ends_as_it_does_without(folder: Path) -> None:
    assert run(folder, "exit 7").returncode == 7
    assert run(folder, "kill -KILL $$").returncode in (-9, 137)
    assert (folder.parent / ".nfsdb.hashes").stat().st_mode & 0o777 == 0o600
    assert (folder.parent / ".nfsdb.hashes.old").exists()
    names = {path.name for path in folder.parent.iterdir()}
    assert not [name for name in names if name.endswith(".tmp")]


def test_a_command_that_cannot_run_leaves_the_older_hashes(folder: Path) -> None:
    assert run(folder, "true").returncode == 0
    before = (folder.parent / ".nfsdb.hashes").read_bytes()
    done = subprocess.run(
        [ETRACE, "run", "-q", "--hash", "-o", folder.parent, "--", "/no/such/command"],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 127
    assert (folder.parent / ".nfsdb.hashes").read_bytes() == before
    assert not (folder.parent / ".nfsdb.hashes.old").exists()


# ---- the capture before ----


def test_states_that_the_capture_before_has_read_are_not_read_again(folder: Path) -> None:
    inode = Inode(1, 2, 3, 4, 5)
    with (folder / ".nfsdb.hashes").open("wb") as stream:
        found = [
            (b"/a", Hashed(State.TRACED, inode, "1" * 64, "2" * 40)),
            (b"/b", Hashed(State.GONE)),
        ]
        hash_records.write(stream, found)
    fd = os.open(folder, os.O_RDONLY)
    try:
        (folder / ".nfsdb.hashes").chmod(0o600)
        assert read_older(open_older(fd, os.geteuid())) == {inode: ("1" * 64, "2" * 40)}
        assert open_older(fd, os.geteuid() + 1) is None
        (folder / ".nfsdb.hashes").chmod(0o620)
        assert open_older(fd, os.geteuid()) is None
        (folder / ".nfsdb.hashes").write_text("damaged")
        (folder / ".nfsdb.hashes").chmod(0o600)
        assert read_older(open_older(fd, os.geteuid())) == {}
        (folder / ".nfsdb.hashes").unlink()
        assert open_older(fd, os.geteuid()) is None
        os.mkfifo(folder / ".nfsdb.hashes", 0o600)
        assert open_older(fd, os.geteuid()) is None
    finally:
        os.close(fd)


# ---- rights ----


@pytest.fixture
def user() -> Iterator[Path]:
    """Give a directory of somebody who is not root."""
    need_root()
    with tempfile.TemporaryDirectory(prefix="etrace-test-") as name:
        os.chown(name, NOBODY, NOBODY)
        yield Path(name)


@pytest.mark.root
def test_a_users_hashes_say_nothing_of_what_only_root_may_read(folder: Path, user: Path) -> None:
    (user / "open").write_text("open")
    (user / "secret").write_text("secret")
    (user / "secret").chmod(0o600)
    done = subprocess.run(
        [ETRACE, "run", "-q", "--hash", "-o", user, "--", "cat", user / "open", user / "secret"],
        cwd=folder, env={**os.environ, "SUDO_UID": str(NOBODY)}, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"opensecret"), done.stderr
    status = (user / ".nfsdb.hashes").stat()
    assert (status.st_uid, status.st_mode & 0o777) == (NOBODY, 0o600)
    found = records(user)
    assert is_of(found[os.fsencode(user / "open")][-1], b"open")
    assert {each.state for each in found[os.fsencode(user / "secret")]} == {State.UNREADABLE}
