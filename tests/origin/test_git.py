# SPDX-License-Identifier: Apache-2.0
"""Commits and changes of working trees, compared with git; git itself is never run by etrace."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
from pathlib import Path

import pytest
from bills import git
from measured import costs

from etrace.origin.git import IDX_BEGIN, State, Tree, Trees, read_index, without_secrets


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    (top / "sub").mkdir(parents=True)
    for name in ("a.c", "sub/b.c", "sub/long-name-" + "x" * 200):
        (top / name).write_text(name)
    git(top, "init", "-q", "-b", "main")
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "one")
    return top


def of(path: Path) -> Tree:
    problems: list[str] = []
    found = Trees(problems.append).of(os.fsencode(path))
    assert found is not None, problems
    assert problems == []
    return found


def state(path: Path) -> State:
    return of(path).state(os.fsencode(path))


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_index_of_each_version_is_read(tree: Path, version: int) -> None:
    if version == 3:  # written when an entry needs it
        (tree / "new.c").touch()
        git(tree, "add", "-N", "new.c")
        (tree / "new.c").unlink()
    git(tree, "update-index", "--index-version", str(version))
    raw = (tree / ".git/index").read_bytes()
    assert raw[7] == version
    rows = [line.split("\t") for line in git(tree, "ls-files", "-s").splitlines()]
    entries = read_index(raw).entries
    found = [(each.blob.hex(), name.decode()) for name, each in entries.items()]
    assert found == [(stage.split()[1], name) for stage, name in rows]


def test_the_commit_is_that_of_git(tree: Path) -> None:
    commit = git(tree, "rev-parse", "HEAD")
    assert of(tree / "sub/b.c").commit == commit
    git(tree, "pack-refs", "--all")
    assert of(tree / "a.c").commit == commit
    git(tree, "checkout", "-q", "--detach")
    assert of(tree / "a.c").commit == commit
    git(tree, "worktree", "add", "-q", "../other")
    assert of(tree.parent / "other/a.c").commit == commit
    assert of(tree.parent / "other/a.c").is_dirty is False


def test_a_change_makes_a_tree_dirty(tree: Path) -> None:
    assert (state(tree / "a.c"), of(tree / "a.c").is_dirty) == (State.CLEAN, False)
    os.utime(tree / "a.c", (1, 1))
    assert (state(tree / "a.c"), of(tree / "a.c").is_dirty) == (State.CLEAN, False)
    (tree / "u.c").touch()
    assert (state(tree / "u.c"), of(tree / "a.c").is_dirty) == (State.UNTRACKED, False)
    (tree / "a.c").write_text("x.c")  # of the same size
    assert (state(tree / "a.c"), of(tree / "a.c").is_dirty) == (State.MODIFIED, True)
    git(tree, "add", "a.c")
    assert of(tree / "a.c").is_dirty is None  # what is staged
    git(tree, "commit", "-q", "-m", "two")
    assert of(tree / "a.c").is_dirty is False
    (tree / "sub/b.c").unlink()
    assert of(tree / "a.c").is_dirty is True


def test_an_index_that_is_split_is_not_misread(tree: Path) -> None:
    git(tree, "update-index", "--split-index")
    problems: list[str] = []
    found = Trees(problems.append).of(os.fsencode(tree / "a.c"))
    assert found is not None
    assert found.state(os.fsencode(tree / "a.c")) is State.UNKNOWN
    assert "its extension link is not known; changes are not known" in problems[0]


def test_what_a_filter_of_git_wrote_is_clean(tree: Path) -> None:
    (tree / ".gitattributes").write_text("*.c text eol=crlf\n")
    (tree / "a.c").write_text("one\ntwo\n")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "two")
    (tree / "a.c").unlink()
    git(tree, "checkout", "-q", "a.c")
    content = (tree / "a.c").read_bytes()
    assert content == b"one\r\ntwo\r\n"
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    assert of(tree / "a.c").state(os.fsencode(tree / "a.c"), blob) is State.CLEAN
    other = hashlib.sha1(b"blob 1\0x").hexdigest()  # the build had another content
    assert of(tree / "a.c").state(os.fsencode(tree / "a.c"), other) is State.MODIFIED


def test_a_file_that_became_executable_is_modified(tree: Path) -> None:
    (tree / "a.c").chmod(0o755)
    assert state(tree / "a.c") is State.MODIFIED
    git(tree, "config", "core.filemode", "false")
    assert state(tree / "a.c") is State.CLEAN


def test_a_head_that_is_a_link_is_not_followed(tree: Path) -> None:
    secret = tree.parent / "secret"
    secret.write_text("0123456789" * 4)
    (tree / ".git/HEAD").unlink()
    (tree / ".git/HEAD").symlink_to(secret)
    assert of(tree / "a.c").commit == ""


def test_names_that_grow_for_ever_are_refused() -> None:
    def entry(n_cut: int, name: bytes) -> bytes:
        return bytes(40) + bytes(20) + b"\0\0" + bytes([n_cut]) + name + b"\0"

    raw = b"DIRC" + struct.pack(">II", 4, 2000) + b"".join(entry(0, b"abcd") for _ in range(2000))
    with pytest.raises(ValueError, match="a name is too long"):
        read_index(raw + bytes(20))


def test_what_is_staged_shows_where_the_root_of_the_index_is_known(tree: Path) -> None:
    (tree / "a.c").write_text("new")
    git(tree, "add", "a.c")
    git(tree, "write-tree")  # puts the root into the index
    assert of(tree / "a.c").is_dirty is True
    git(tree, "reset", "-q", "--hard")
    git(tree, "gc", "-q", "--prune=now")
    assert of(tree / "a.c").is_dirty is False


def test_a_repository_of_somebody_else_is_not_read(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        os.chown(tree / ".git", 12345, 12345)
        owner = 12345
    else:
        owner = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: 54321)
    problems: list[str] = []
    assert Trees(problems.append).of(os.fsencode(tree / "a.c")) is None
    assert len(problems) == 1
    assert f"belongs to user {owner}: its commits are not read" in problems[0]


def test_nothing_that_the_configuration_names_is_run(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = tree.parent / "proof"
    git(tree, "config", "core.fsmonitor", f"touch {proof}")
    git(tree, "config", "filter.x.clean", f"touch {proof}")
    git(tree, "config", "core.hooksPath", "/nowhere")
    (tree / ".gitattributes").write_text("* filter=x\n")
    (tree / "a.c").write_text("other")
    monkeypatch.setattr(subprocess, "Popen", None)
    assert of(tree / "a.c").is_dirty is True
    assert not proof.exists()


def test_a_damaged_index_is_said(tree: Path) -> None:
    index = tree / ".git/index"
    raw = index.read_bytes()
    for wrong in (raw[:40], b"DIRC\0\0\0\x09" + raw[8:], raw[:-30] + b"x" * 30, b""):
        index.write_bytes(wrong)
        problems: list[str] = []
        found = Trees(problems.append).of(os.fsencode(tree / "a.c"))
        assert found is not None
        assert found.state(os.fsencode(tree / "a.c")) is State.UNKNOWN
        assert found.is_dirty is None
        assert "changes are not known" in problems[0]
    (tree / ".git/HEAD").write_text("ref: ../../../../etc/passwd\n")
    assert of(tree / "a.c").commit == ""
    (tree / ".git/HEAD").write_text("ref: HEAD\n")
    assert of(tree / "a.c").commit == ""


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://u:p@example.org/a.git?t=1", "https://example.org/a.git"),
        ("git@example.org:a/b.git", "ssh://example.org/a/b.git"),
        ("/srv/private", ""), ("file:///srv/private", ""), ("../up", ""), ("https://[", ""),
    ],
)  # fmt: skip
def test_a_remote_has_no_secrets(url: str, expected: str) -> None:
    assert without_secrets(url) == expected


def test_a_pack_that_is_damaged_says_nothing(tree: Path) -> None:
    git(tree, "gc", "-q")
    for each in (tree / ".git/objects/pack").iterdir():
        each.chmod(0o644)
        each.write_bytes(each.read_bytes()[:50])
    assert of(tree / "a.c").is_dirty is None


def test_a_number_without_an_end_is_refused() -> None:
    raw = b"DIRC" + struct.pack(">II", 4, 1) + bytes(62) + b"\xff" * 1_000_000 + bytes(20)
    with pytest.raises(ValueError, match="an offset is too long"):
        read_index(raw)


def test_the_index_of_a_pack_that_names_what_it_lacks_says_nothing(tree: Path) -> None:
    git(tree, "gc", "-q")
    name = bytes.fromhex(of(tree / "a.c").commit)
    (idx,) = (tree / ".git/objects/pack").glob("*.idx")
    fan = [int(at >= name[0]) for at in range(255)] + [1 << 24]
    idx.unlink()
    idx.write_bytes(IDX_BEGIN + struct.pack(">256I", *fan) + name)
    assert of(tree / "a.c").is_dirty is None


def test_indexes_of_packs_are_not_read_whole(tree: Path) -> None:
    for number in range(30):
        path = tree / f".git/objects/pack/a{number}.idx"
        path.write_bytes(IDX_BEGIN)
        os.truncate(path, 256 << 20)
    git(tree, "gc", "-q")
    seconds, n_bytes = costs(lambda: of(tree / "a.c").is_dirty)
    assert seconds < 2
    assert n_bytes < 16 << 20


@pytest.mark.parametrize("place", [".git", ".git/commondir"])
def test_a_null_byte_in_the_name_of_a_folder_is_no_repository(place: str, tmp_path: Path) -> None:
    if place != ".git":
        git(tmp_path, "init", "-q")
    (tmp_path / place).write_bytes(b"gitdir: a\0b\n")
    assert Trees(print).of(os.fsencode(tmp_path / "x")) is None


@pytest.mark.parametrize("name", [b"../a", b"/a", b"./a", b"a//b", b"a/..", b"a/.", b"a/", b""])
def test_names_that_git_does_not_write_are_refused(name: bytes) -> None:
    raw = b"DIRC" + struct.pack(">II", 4, 1) + bytes(62) + b"\0" + name + b"\0" + bytes(20)
    with pytest.raises(ValueError, match="a name that no file has"):
        read_index(raw)


def test_files_beyond_a_limit_are_not_compared(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etrace.origin.git.MAX_HASHED", 4)
    os.utime(tree / "a.c", (1, 1))
    os.utime(tree / "sub/b.c", (1, 1))
    problems: list[str] = []
    found = Trees(problems.append).of(os.fsencode(tree / "a.c"))
    assert found is not None
    assert found.is_dirty is None
    assert problems == [f"{tree}: more than 4 bytes to compare"]
