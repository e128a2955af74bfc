# SPDX-License-Identifier: Apache-2.0
"""The working directory -> the nearest directory above that has a trace or a database.

This is how git finds its repository, with the same danger: by `/tmp/.nfsdb.img` anybody could
answer the questions of everybody who works below /tmp (CVE-2022-24765 of git). So the search goes
on only through directories that belong to this user and that nobody else can write to, and files
of somebody else are an error. Under sudo the directories of its caller count too. The search ends
at the home directory, at the root and where another file system begins.

Every step is opened by `..` of the one before: no name is followed that somebody could turn.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from libetrace.core.folders import ENTER, LOOK
from libetrace.core.regular_file import mount_of

from etrace.errors import EtraceError
from etrace.nfsdb.files import CAPTURING, DIRECTORY_VARIABLE, STEM

ROOT = 0
#: every one of them says that a build was traced here; the last one: it is being traced
MARKS = (*(STEM + suffix for suffix in ("", ".img", ".json", ".zst", "_parts")), CAPTURING)
#: what is read beside them
BESIDE = (
    *(STEM + suffix for suffix in (".env.json", ".mounts.json", ".rsp.json", ".rsp", ".stats")),
    ".bas_config",
)


def my_users() -> set[int]:
    """Return the users whose files this process takes without being asked."""
    mine = {os.geteuid()}
    caller = os.environ.get("SUDO_UID", "")
    if ROOT in mine and caller.isdecimal():
        mine.add(int(caller))
    return mine


def _names(folder: int, names: tuple[str, ...]) -> list[str]:
    """Return those of the names that are in a directory, links to nothing as well."""
    found = []
    for name in names:
        try:
            os.close(os.open(name, LOOK, dir_fd=folder))
        except OSError:
            continue
        found.append(name)
    return found


def _is_guarded(folder: int, status: os.stat_result, mine: set[int]) -> bool:
    """Whether only this user decides what is in a directory; on a FUSE, whoever mounted it does."""
    mount = mount_of(folder)
    owners = {status.st_uid, mount.mounter if mount and mount.mounter else status.st_uid}
    others = stat.S_IWOTH
    if status.st_gid not in (ROOT, os.getegid()):
        others |= stat.S_IWGRP
    return owners <= mine and not status.st_mode & others


def _stranger(folder: int, names: list[str], mine: set[int]) -> tuple[str, int] | None:
    """Return a file of somebody else, and its owner."""
    for name in names:
        fd = os.open(name, LOOK, dir_fd=folder)
        try:
            owner = os.fstat(fd).st_uid
        finally:
            os.close(fd)
        if owner not in mine:
            return name, owner
    return None


def _is_home(status: os.stat_result) -> bool:
    try:
        return os.path.samestat(status, Path.home().stat())
    except (OSError, RuntimeError):  # no such directory, no such user
        return False


def find_above() -> Path | None:
    """Return the directory above that has a trace or a database, as `..`, `../..` and so on.

    None when the working directory itself has one, $DB_DIR names one, or there is none above.
    EtraceError when there is one, and somebody else could have put it there.
    """
    if os.environ.get(DIRECTORY_VARIABLE):
        return None
    mine = my_users()
    at, depth = os.open(".", ENTER), 0
    try:
        while True:
            status = os.fstat(at)
            found = _names(at, MARKS)
            if depth and not _is_guarded(at, status, mine):
                _refuse(at, found, status, mine)
                return None
            if found:
                return _taken(at, found, depth, mine)
            if _is_home(status):
                return None
            above = os.open("..", ENTER, dir_fd=at)
            os.close(at)
            at, depth = above, depth + 1
            beyond = os.fstat(at)
            if beyond.st_dev != status.st_dev or os.path.samestat(beyond, status):
                return None
    except OSError:  # a directory that cannot be entered ends the search
        return None
    finally:
        os.close(at)


def _taken(at: int, found: list[str], depth: int, mine: set[int]) -> Path | None:
    if not depth:
        return None
    there = Path(*[".."] * depth)
    stranger = _stranger(at, [*found, *_names(at, BESIDE)], mine)
    if stranger is not None:
        name, owner = stranger
        raise _error(there.resolve(), f"{name} there belongs to user {owner}")
    return there


def _refuse(at: int, found: list[str], status: os.stat_result, mine: set[int]) -> None:
    """End the search; an error when there is something that the user may have expected."""
    if not found:
        return
    where = Path(f"/proc/self/fd/{at}").readlink()
    if status.st_uid in mine:
        raise _error(where, "others can write to that directory")
    raise _error(where, f"that directory belongs to user {status.st_uid}")


def _error(where: Path, reason: str) -> EtraceError:
    return EtraceError(
        f"no database here, and the one in {where} is not used unasked: {reason}",
        f"if you trust it: --db {where}",
    )
