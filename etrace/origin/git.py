# SPDX-License-Identifier: Apache-2.0
"""Files -> the git working tree that each is in: its commit, and whether it was changed.

Read from `.git` as files (gitrepository-layout(5), gitformat-index(5) versions 2 to 4): git itself
would run what the repository's configuration names (fsmonitor, filters). As git does
(safe.directory), only a repository of this user, of root, or of the user who called sudo counts.

A file is unchanged when the index has its size and time, or its blob. A tree is dirty when a file
of the index is changed or gone, or when the root of the index (extension TREE) is not the tree of
the commit. That is not known after `git add`, and of a commit that a pack has as a delta.
"""

from __future__ import annotations

import enum
import hashlib
import os
import re
import stat
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from posixpath import dirname, join, normpath
from urllib.parse import urlsplit, urlunsplit

from libetrace.core.regular_file import open_regular

from etrace.compilers.regular_file import read_regular
from etrace.nfsdb.above import my_users
from etrace.origin.package import Report

MAX_INDEX = 256 << 20
MAX_SMALL = 64 << 10
MAX_PACKED_REFS = 64 << 20
MAX_BLOB = 256 << 20
MAX_REFS = 8
MAX_NAME = 4096
#: bytes of all names of an index, and for each of its bytes
LEAST_NAMES, MAX_TIMES = 64 << 20, 8
MAX_OFFSET_BYTES = 10
#: of files that are hashed to learn whether a tree is dirty: links may name one file many times
MAX_HASHED = 16 << 30
#: the first bytes of the index of a pack, version 2
IDX_BEGIN = b"\xfftOc\0\0\0\x02"
_NO_NAME = re.compile(rb"\0|(?:^|/)\.{0,2}(?:/|\Z)")
_HEX = re.compile(rb"[0-9a-f]{40}")
STATE_MASK, EXTENDED, NAME_MASK = 0x3000, 0x4000, 0xFFF
ASSUME_UNCHANGED, SKIP_WORKTREE = 0x8000, 0x4000
GITLINK = 0o160000


class State(enum.StrEnum):
    """What a file is to the tree that it is in."""

    CLEAN = "clean"
    MODIFIED = "modified"
    UNTRACKED = "untracked"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of an index, with the numbers of stat(2) that it was added with."""

    mtime: tuple[int, int]
    mode: int
    size: int
    blob: bytes
    is_skipped: bool


@dataclass(frozen=True, slots=True)
class Index:
    """The entries by path below the tree, and the root tree if the index knows it."""

    entries: Mapping[bytes, Entry]
    root: bytes | None


class Tree:
    """A working tree; `commit` is empty before the first one."""

    def __init__(self, top: bytes, folder: bytes, common: bytes, report: Report) -> None:
        self.top, self._folder, self._common, self._report = top, folder, common, report
        self._n_left = MAX_HASHED

    @cached_property
    def commit(self) -> str:
        """Return the commit that HEAD names, 40 digits."""
        name = b"HEAD"
        for _ in range(MAX_REFS):
            raw = self._ref(name)
            if raw is None:
                return ""
            if not raw.startswith(b"ref:"):
                return raw.decode() if _HEX.fullmatch(raw) else ""
            name = raw[4:].strip()
        return ""

    def _ref(self, name: bytes) -> bytes | None:
        if normpath(name) != name or name.startswith((b"/", b"..")):
            return None
        for folder in (self._folder, self._common):
            place = join(folder, name)
            raw = None if os.path.islink(place) else read_regular(place, MAX_SMALL)  # noqa: PTH114
            if raw is not None:
                return raw.strip()
        packed = read_regular(self._common + b"/packed-refs", MAX_PACKED_REFS) or b""
        match = re.search(rb"^([0-9a-f]{40}) " + re.escape(name) + rb"$", packed, re.MULTILINE)
        return match[1] if match else None

    @cached_property
    def remote(self) -> str:
        """Return the URL of the remote `origin`, without user and password; empty without one."""
        url = self._settings.get((b'[remote "origin"]', b"url"), b"")
        return without_secrets(url.decode("utf-8", "replace"))

    @property
    def place(self) -> str:
        """Return the commit as a URL of SPDX and SLSA; empty when a part of it is not known."""
        return f"git+{self.remote}@{self.commit}" if self.remote and self.commit else ""

    @cached_property
    def _settings(self) -> Mapping[tuple[bytes, bytes], bytes]:
        """Return the values of the configuration by section and name, the first of each."""
        found: dict[tuple[bytes, bytes], bytes] = {}
        section = b""
        for raw in (read_regular(self._common + b"/config", 1 << 20) or b"").split(b"\n"):
            line = raw.strip()
            if line.startswith(b"["):
                section = line
            else:
                name, _, value = line.partition(b"=")
                found.setdefault((section, name.strip().lower()), value.strip())
        return found

    @cached_property
    def index(self) -> Index | None:
        """Return the index, None when it cannot be read."""
        raw = read_regular(self._folder + b"/index", MAX_INDEX)
        try:
            return None if raw is None else read_index(raw)
        except (ValueError, struct.error, IndexError) as error:
            self._report(f"{os.fsdecode(self._folder)}/index: {error}; changes are not known")
            return None

    def state(self, path: bytes, blob: str = "") -> State:
        """Return the state of a file; `blob` is its id, where it is known."""
        if self.index is None:
            return State.UNKNOWN
        entry = self.index.entries.get(path[len(self.top) :].lstrip(b"/"))
        if entry is None:
            return State.UNTRACKED
        return self._compared(path, entry, blob)

    def _compared(self, path: bytes, entry: Entry, blob: str) -> State:
        if entry.is_skipped or entry.mode == GITLINK:
            return State.UNKNOWN
        known = bytes.fromhex(blob)
        if known == entry.blob:
            return State.CLEAN
        try:
            found = os.lstat(path)
        except OSError:
            return State.MODIFIED
        if stat.S_IFMT(found.st_mode) != stat.S_IFMT(entry.mode) or self._is_other_mode(
            found, entry
        ):
            return State.MODIFIED
        if divmod(found.st_mtime_ns, 10**9) == entry.mtime and entry.size == found.st_size:
            # as git has written it, maybe through a filter (line ends, LFS)
            return self._compared_by_content(path, found, known) if known else State.CLEAN
        if known or (found.st_size & 0xFFFFFFFF != entry.size and entry.size):
            return State.MODIFIED
        return self._compared_by_content(path, found, entry.blob)

    def _compared_by_content(self, path: bytes, found: os.stat_result, blob: bytes) -> State:
        before = self._n_left
        self._n_left -= min(found.st_size, MAX_BLOB)
        if self._n_left < 0:
            if before >= 0:
                self._report(f"{os.fsdecode(self.top)}: more than {MAX_HASHED:,} bytes to compare")
            return State.UNKNOWN
        return State.CLEAN if _blob(path, found) == blob else State.MODIFIED

    def _is_other_mode(self, found: os.stat_result, entry: Entry) -> bool:
        """Return whether a file became executable, or no longer is, where git looks at that."""
        if (
            not stat.S_ISREG(found.st_mode)
            or self._settings.get((b"[core]", b"filemode")) == b"false"
        ):
            return False
        return bool(found.st_mode & stat.S_IXUSR) != bool(entry.mode & stat.S_IXUSR)

    @cached_property
    def is_dirty(self) -> bool | None:
        """Whether a tracked file was changed; None when that is not known."""
        if self.index is None:
            return None
        entries = self.index.entries.items()
        states = (self._compared(join(self.top, path), entry, "") for path, entry in entries)
        if any(state is State.MODIFIED for state in states):
            return True
        if self._n_left < 0:
            return None
        root, tree = self.index.root, self._tree_of_commit()
        return None if root is None or tree is None else root != tree

    def _tree_of_commit(self) -> bytes | None:
        name = self.commit.encode()
        raw = name and read_regular(
            b"%s/objects/%s/%s" % (self._common, name[:2], name[2:]), MAX_SMALL
        )
        try:
            text = zlib.decompressobj().decompress(raw, MAX_SMALL) if raw else self._packed(name)
        except zlib.error:
            return None
        match = re.search(rb"(?:^|\0)tree ([0-9a-f]{40})\n", text)
        return bytes.fromhex(match[1].decode()) if match else None

    def _packed(self, name: bytes) -> bytes:
        """Return the text of a commit that a pack holds whole, empty when none does."""
        folder = self._common + b"/objects/pack/"
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208  bytes
        except OSError:
            return b""
        for each in names:
            if name and each.endswith(b".idx"):
                offset = _offset(folder + each, bytes.fromhex(name.decode()))
                if offset is not None:
                    return _object(folder + each[:-3] + b"pack", offset)
        return b""


def _blob(path: bytes, found: os.stat_result) -> bytes:
    """Return the id of a file's blob, empty when it cannot be read."""
    try:
        link = os.fsencode(os.readlink(path)) if stat.S_ISLNK(found.st_mode) else None  # noqa: PTH115
    except OSError:
        return b""
    raw = read_regular(path, MAX_BLOB) if link is None else link
    if raw is None:
        return b""
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).digest()


def _offset(index: bytes, name: bytes) -> int | None:
    """Return where a pack has an object, by its index of version 2; None when it is damaged."""
    try:
        with open(open_regular(index), "rb") as stream:  # noqa: PTH123  a descriptor
            if stream.read(len(IDX_BEGIN)) != IDX_BEGIN:
                return None
            fan = struct.unpack(">256I", stream.read(4 * 256))
            low, high = fan[name[0] - 1] if name[0] else 0, fan[name[0]]
            at = stream.tell()
            while low < high:
                middle = (low + high) // 2
                stream.seek(at + 20 * middle)
                found = stream.read(20)
                if found == name:
                    stream.seek(at + 24 * fan[-1] + 4 * middle)
                    offset = struct.unpack(">I", stream.read(4))[0]
                    return None if offset >> 31 else int(offset)
                low, high = (middle + 1, high) if found < name else (low, middle)
    except (OSError, struct.error):
        pass
    return None


def _object(pack: bytes, offset: int) -> bytes:
    """Return a commit of a pack, empty when it is something else, or a delta."""
    try:
        if not stat.S_ISREG(os.lstat(pack).st_mode):
            return b""
        with open(open_regular(pack), "rb") as stream:  # noqa: PTH123  a descriptor
            stream.seek(offset)
            raw = stream.read(MAX_SMALL)
    except OSError:
        return b""
    is_commit, at = len(raw) > 0 and (raw[0] >> 4) & 7 == 1, 0
    while at < len(raw) and raw[at] & 0x80:
        at += 1
    return zlib.decompressobj().decompress(raw[at + 1 :], MAX_SMALL) if is_commit else b""


def without_secrets(url: str) -> str:
    """Return a URL without user, password and query, which may be secrets.

    Empty for what is a directory of this machine.
    """
    if match := re.fullmatch(r"(?:[^/:@]+@)?([\w.-]+):(?!/)(.+)", url):
        return f"ssh://{match[1]}/{match[2]}"  # git@host:path
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2]
    if not host or parts.scheme == "file":
        return ""
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


# ---- the index ----


def read_index(raw: bytes) -> Index:
    """Return the content of an index. ValueError, struct.error, IndexError."""
    signature, version, n_entries = struct.unpack_from(">4sII", raw)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError(f"an index of version {version} is not known")
    if hashlib.sha1(raw[:-20], usedforsecurity=False).digest() != raw[-20:] and any(raw[-20:]):
        raise ValueError("its checksum is wrong")
    entries: dict[bytes, Entry] = {}
    at, name, n_names = 12, b"", 0
    for _ in range(n_entries):
        at, name, entry = _entry(raw, at, version, name)
        n_names += len(name)
        if n_names > LEAST_NAMES + MAX_TIMES * len(raw):  # version 4 repeats parts of names
            raise ValueError("its names are too long")
        entries[name] = entry
    root = _root(raw, at)
    if any(map(_NO_NAME.search, entries)):
        raise ValueError("it has a name that no file has")
    return Index(entries, root)


def _entry(raw: bytes, begin: int, version: int, before: bytes) -> tuple[int, bytes, Entry]:
    fields = struct.unpack_from(">10I20sH", raw, begin)
    flags, at, more = fields[11], begin + 62, 0
    if flags & EXTENDED and version >= 3:
        more, at = struct.unpack_from(">H", raw, at)[0], at + 2
    if version == 4:
        n_cut, at = _offset_number(raw, at)
        end = raw.index(b"\0", at)
        if end - at > MAX_NAME or len(before) - n_cut + end - at > MAX_NAME:
            raise ValueError("a name is too long")
        name = before[: max(0, len(before) - n_cut)] + raw[at:end]
        after = end + 1
    else:
        end = raw.index(b"\0", at)
        name = raw[at:end]
        after = begin + (end - begin + 8) // 8 * 8
    skipped = bool(flags & ASSUME_UNCHANGED or more & SKIP_WORKTREE)
    return after, name, Entry((fields[2], fields[3]), fields[6], fields[9], fields[10], skipped)


def _offset_number(raw: bytes, at: int) -> tuple[int, int]:
    """Return a number as pack files write offsets, and where it ends."""
    value, begin = raw[at] & 0x7F, at
    while raw[at] & 0x80:
        at += 1
        if at - begin >= MAX_OFFSET_BYTES:
            raise ValueError("an offset is too long")
        value = ((value + 1) << 7) | (raw[at] & 0x7F)
    return value, at + 1


def _root(raw: bytes, at: int) -> bytes | None:
    """Return the root tree that the extension TREE names."""
    found = None
    while at + 8 <= len(raw) - 20:
        name, size = struct.unpack_from(">4sI", raw, at)
        if name[:1].islower():  # what must be known to understand the entries: link, sdir
            raise ValueError(f"its extension {name.decode('ascii', 'replace')} is not known")
        if name == b"TREE":
            head = re.match(rb"\0(\d+) \d+\n", raw[at + 8 : at + 8 + min(size, 64)])
            found = raw[at + 8 + head.end() :][:20] if head else None
        at += 8 + size
    return found


# ---- which tree ----


class Trees:
    """The working trees of files; problems are reported once, in words."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._of = lru_cache(maxsize=None)(self._find)
        self._owners = {0, *my_users()}

    def of(self, path: bytes) -> Tree | None:
        """Return the tree that a file is in."""
        return self._of(dirname(path)) if path.startswith(b"/") else None

    def _find(self, directory: bytes) -> Tree | None:
        git = join(directory, b".git")
        try:
            os.lstat(git)
        except OSError:
            above = dirname(directory)
            return None if above == directory else self._of(above)
        return self._open(directory, git)

    def _open(self, directory: bytes, git: bytes) -> Tree | None:
        folder = git
        for place in (directory, git):
            if not self._is_trusted(place):
                return None
        if not os.path.isdir(git):  # noqa: PTH112  bytes
            said = read_regular(git, MAX_SMALL) or b""
            if not said.startswith(b"gitdir:"):
                return None
            folder = normpath(join(directory, said[7:].strip()))
            if not self._is_trusted(folder):
                return None
        common = read_regular(folder + b"/commondir", MAX_SMALL)
        there = folder if common is None else normpath(join(folder, common.strip()))
        if there != folder and not self._is_trusted(there):
            return None
        if b"objectformat" in (read_regular(there + b"/config", 1 << 20) or b"").lower():
            self._report(
                f"{os.fsdecode(git)}: a repository with SHA-256, which etrace does not read"
            )
            return None
        return Tree(directory, folder, there, self._report)

    def _is_trusted(self, path: bytes) -> bool:
        try:
            owner = os.lstat(path).st_uid
        except (OSError, ValueError):  # ValueError: a NUL in it
            return False
        if owner in self._owners:
            return True
        self._report(f"{os.fsdecode(path)}: belongs to user {owner}: its commits are not read")
        return False
