# SPDX-License-Identifier: Apache-2.0
"""Directories to write into: links of another user on the way are not followed, by any command.

And whose a file is that root makes of others.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import databases
import pytest
from backends import need_root
from libetrace.core import folders
from libetrace.core.folders import followed, give_away, open_folder
from libetrace.image.file import replacing

from etrace.cli.main import cas, etrace

NOBODY = 65534
ETRACE = Path(sysconfig.get_path("scripts")) / "etrace"
LIBC = ctypes.CDLL(None)
MNT_DETACH = 2
LOG = '1 execve("/bin/true", ["true"], 0x7ffe /* 1 var */) = 0\n1 +++ exited with 0 +++\n'
REFUSED = "a link of another user"


def same(fd: int, path: Path) -> bool:
    try:
        found = os.fstat(fd)
    finally:
        os.close(fd)
    return (found.st_dev, found.st_ino) == (path.stat().st_dev, path.stat().st_ino)


def test_a_directory_is_made_with_those_above_it(tmp_path: Path) -> None:
    assert same(open_folder(tmp_path / "a/b/c", make=True), tmp_path / "a/b/c")
    with pytest.raises(FileNotFoundError) as caught:
        open_folder(tmp_path / "x/y")
    assert caught.value.filename == str(tmp_path / "x/y")
    assert not (tmp_path / "x").exists()


def test_links_of_this_user_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "up").symlink_to("a/../a/b")
    (tmp_path / "whole").symlink_to(tmp_path / "up")
    (tmp_path / "ring").symlink_to("ring")
    monkeypatch.chdir(tmp_path)
    for name in ("up", "whole", "./whole//.", "a/b/../b", "/proc/self/cwd/up"):
        assert same(open_folder(Path(name)), tmp_path / "a/b")
    assert same(open_folder(Path("whole/c"), make=True), tmp_path / "a/b/c")
    with pytest.raises(OSError, match="Too many levels"):
        open_folder(Path("ring"))
    (tmp_path / "file").touch()
    for name in ("file", "file/x"):
        with pytest.raises(NotADirectoryError):
            open_folder(Path(name))


@pytest.mark.root
def test_a_file_system_that_a_user_serves_is_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it says of its links: they are looked at, not asked."""
    need_root()
    server = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={server},rootmode=120000,user_id={NOBODY},group_id={NOBODY}".encode()
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "served").mkdir()
    options = options.replace(b"120000", b"40000")
    assert LIBC.mount(b"fuse", os.fsencode(tmp_path / "served"), b"fuse", 0, options) == 0
    try:
        fd = os.open(tmp_path / "served", folders.LOOK)
        monkeypatch.setattr(os, "fstat", lambda _fd: os.lstat(tmp_path / "link"))
        with pytest.raises(PermissionError, match=REFUSED):
            folders.refuse_foreign(fd)
        monkeypatch.undo()
        os.close(fd)
    finally:
        LIBC.umount2(os.fsencode(tmp_path / "served"), MNT_DETACH)
        os.close(server)


# ---- a link of another user


@pytest.fixture
def turned(tmp_path: Path) -> Iterator[Path]:
    """A link of another user to a directory of root's; nothing may change there."""
    need_root()
    precious = tmp_path / "precious"
    precious.mkdir()
    for name in (".nfsdb", "opens.parquet", "out", "out.json"):
        (precious / name).write_text(name)
    link = tmp_path / "theirs"
    link.symlink_to(precious)
    os.lchown(link, NOBODY, NOBODY)
    before = sorted((path.name, path.stat().st_ino) for path in precious.iterdir())
    yield link
    assert sorted((path.name, path.stat().st_ino) for path in precious.iterdir()) == before
    assert all(path.read_text() == path.name for path in precious.iterdir())


@pytest.mark.root
@pytest.mark.parametrize("rest", ["", "sub", "sub/deep"])
def test_it_is_not_followed(turned: Path, rest: str) -> None:
    with pytest.raises(PermissionError, match=REFUSED):
        open_folder(turned / rest, make=True)
    with pytest.raises(PermissionError, match=REFUSED):
        followed(turned / rest / "out")
    with pytest.raises(PermissionError, match=REFUSED), replacing(turned / rest / "out"):
        pass


@pytest.mark.root
def test_a_directory_that_is_turned_meanwhile_gets_nothing(tmp_path: Path, turned: Path) -> None:
    """The file appears in the directory that was opened, whatever its name leads to by then."""
    place = tmp_path / "place"
    place.mkdir()
    with replacing(place / "out") as stream:
        stream.write(b"content")
        place.rename(tmp_path / "moved")
        place.symlink_to(turned)
    assert (tmp_path / "moved/out").read_bytes() == b"content"


@pytest.mark.root
@pytest.mark.parametrize("backend", ["ptrace", "preload", "strace"])
def test_no_capture_goes_there(turned: Path, backend: str) -> None:
    for place in (turned, turned / "sub"):
        done = subprocess.run(
            [ETRACE, "run", "--backend", backend, "-o", place, "--", "true"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, REFUSED in done.stderr) == (125, True), done.stderr


@pytest.mark.root
@pytest.mark.parametrize("backend", ["ptrace", "preload"])
def test_a_capture_stays_in_the_directory_that_was_opened(
    tmp_path: Path, turned: Path, backend: str
) -> None:
    place, moved = tmp_path / "place", tmp_path / "moved"
    script = f"mv {place} {moved}; ln -s {turned} {place}"
    subprocess.run(
        [ETRACE, "run", "-q", "--backend", backend, "-o", place, "--", "sh", "-c", script],
        check=True,
    )
    assert {path.name for path in moved.iterdir()} >= {".nfsdb", ".nfsdb.stats"}


def test_the_build_does_not_get_the_descriptor(tmp_path: Path) -> None:
    for backend in ("ptrace", "preload"):
        found = [
            subprocess.run(
                [*before, "ls", "/proc/self/fd"], capture_output=True, text=True, check=True
            ).stdout
            for before in ((), (ETRACE, "run", "-q", "--backend", backend, "-o", tmp_path, "--"))
        ]
        assert found[0] == found[1]


@pytest.mark.root
def test_no_command_writes_there(
    tmp_path: Path, turned: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where = databases.write_database(tmp_path / "build")
    log = tmp_path / "log"
    log.write_text(LOG)
    database = ["--dbdir", str(where)]
    for program, words in (
        (cas, ["export", "parquet", *database, str(turned)]),
        (cas, ["export", "parquet", *database, str(turned / "sub")]),
        (cas, ["export", "json", *database, "-o", str(turned / "out")]),
        (cas, ["export", "compile_commands", *database, "-o", str(turned / "out.json")]),
        (cas, ["export", "compile_commands", *database, "-o", str(tmp_path / "own"),
               "--links", str(turned / "out.json")]),
        (cas, ["commands", *database, "-o", str(turned / "out")]),
        (etrace, ["import", "strace", str(log), "-o", str(turned)]),
        (etrace, ["import", "strace", str(log), "-o", str(turned / "out")]),
        (etrace, ["report", str(where), "-o", str(turned / "out")]),
        (etrace, ["timeline", str(where), "-o", str(turned / "out")]),
    ):  # fmt: skip
        assert program(words) == 2, words
        assert REFUSED in capfd.readouterr().err


# ---- who gets what root writes over a file of another user


@pytest.mark.root
@pytest.mark.parametrize(("mode", "owner"), [(0o600, 0), (0o644, NOBODY)])
def test_what_root_writes_over_a_file_is_its_owners_if_they_can_read_the_database(
    tmp_path: Path, mode: int, owner: int
) -> None:
    need_root()
    where, out = databases.write_database(tmp_path / "build"), tmp_path / "out"
    (where / ".nfsdb.img").chmod(mode)
    out.touch(0o666)
    os.chown(out, NOBODY, NOBODY)
    assert cas(["commands", "--dbdir", str(where), "-o", str(out)]) == 0
    assert out.stat().st_uid == owner
    assert not out.stat().st_mode & ~mode & 0o777


@pytest.mark.root
@pytest.mark.parametrize(
    ("owners", "owner"),
    [((), 0), ((1,), 1), ((1, 1), 1), ((1, 2), 0), ((1, 0), 0)],
)
def test_only_the_owner_of_all_that_a_file_is_made_of_gets_it(
    tmp_path: Path, owners: tuple[int, ...], owner: int
) -> None:
    need_root()
    models = [tmp_path / str(i) for i in range(len(owners))]
    for model, uid in zip(models, owners, strict=True):
        model.touch()
        os.chown(model, uid, uid)
    with (tmp_path / "made").open("w") as made:
        give_away(made.fileno(), models)
        assert os.fstat(made.fileno()).st_uid == owner
