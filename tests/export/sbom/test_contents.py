# SPDX-License-Identifier: Apache-2.0
"""Files are hashed only when they are those of the build, and nothing else is opened."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import fuse
import pytest

from etrace.export.sbom.bill import agreed
from etrace.export.sbom.contents import CHANGED, GONE, SAME, SPECIAL, Content, contents
from etrace.query.hashes import FileHash

NEVER_NS = 1 << 62


def content(path: Path, size: int, limit_ns: int = NEVER_NS) -> Content:
    return contents([(bytes(path), size)], limit_ns, with_sha1=True)[bytes(path)]


def test_a_file_of_the_build_has_all_digests(tmp_path: Path) -> None:
    # REUSE-IgnoreStart
    text, path = b"// SPDX-License-Identifier: MIT\n" + b"x" * 3_000_000, tmp_path / "a.c"
    # REUSE-IgnoreEnd
    path.write_bytes(text)
    blob = hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()
    sha256, sha512, sha1 = (
        hashlib.new(name, text).hexdigest() for name in ("sha256", "sha512", "sha1")
    )
    expected = Content(SAME, len(text), sha256, sha512, sha1, blob, "MIT")
    assert content(path, len(text)) == expected


def test_any_other_file_has_none(tmp_path: Path) -> None:
    path = tmp_path / "a.c"
    path.write_text("abc")
    assert content(path, 4) == Content(CHANGED)
    assert content(path, 3, path.stat().st_mtime_ns - 1) == Content(CHANGED)
    assert content(path, -1) == Content(GONE)
    assert content(tmp_path / "none", 3) == Content(GONE)


@pytest.mark.parametrize("kind", ["pipe", "device", "proc", "directory"])
def test_nothing_but_a_regular_file_is_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "pipe":
        os.mkfifo(path)
    if kind == "directory":
        path.mkdir()
    named = {"device": Path("/dev/zero"), "proc": Path("/proc/self/environ")}.get(kind, path)
    assert soon(named) == Content(SPECIAL)


@pytest.mark.root
def test_a_dead_server_of_files_is_not_asked(tmp_path: Path) -> None:
    with fuse.dead_server(tmp_path.resolve() / "fuse") as mount:
        assert soon(mount / "deep/file") == Content(SPECIAL)


def soon(named: Path) -> Content:
    """Return the content of a file; fails when that takes long."""
    found: list[Content] = []
    thread = threading.Thread(target=lambda: found.append(content(named, 0)), daemon=True)
    thread.start()
    thread.join(30)
    assert found, "it waits"
    return found[0]


def test_hashes_of_the_database_count_where_both_agree() -> None:
    read = Content(SAME, 1, "a" * 64, "b" * 128)
    assert agreed(read, None) == read
    assert agreed(read, FileHash("a" * 64, "c" * 40, 1, "traced")) == read
    other = FileHash("d" * 64, "c" * 40, 1, "traced")
    assert agreed(read, other) == Content("traced", 1, "d" * 64, blob="c" * 40)
    assert agreed(read, FileHash("", "", -1, "changed")) == Content("changed")
