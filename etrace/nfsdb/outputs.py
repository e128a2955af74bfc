# SPDX-License-Identifier: Apache-2.0
"""The three files of a database: all of them appear whole, or none."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from libetrace.core.rights import give_away, narrow

from etrace.errors import EtraceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def side_file(output: Path, kind: str) -> Path:
    """Name a file beside the database: X.json gives X.KIND.json."""
    stem = output.name.removesuffix(".json")
    return output.with_name(f"{stem}.{kind}.json")


def output_files(output: Path) -> tuple[Path, Path, Path]:
    """Name the database, its environment and its mounts."""
    return output, side_file(output, "env"), side_file(output, "mounts")


def check_output(output: Path) -> None:
    """Refuse an output that a rename would destroy or cannot replace."""
    if output.exists() and not output.is_file():
        kind = "a directory" if output.is_dir() else "not a regular file"
        raise EtraceError(f"cannot write {output}: it is {kind}", "name a file to write, X.json")


def open_pending(path: Path) -> int:
    """Create an empty file that only this process writes.

    O_EXCL: in a foreign directory, a prepared link of this name is not followed.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except OSError as error:
        raise EtraceError(
            f"cannot write {path.parent}: {error.strerror}", "choose another place for the output"
        ) from error


@contextmanager
def pending_files(output: Path, models: Sequence[Path] = ()) -> Iterator[tuple[int, int, int]]:
    """Yield descriptors of the three files; they get their names when the block succeeds.

    A link at `output` is replaced, not followed. Only users who can read all `models` can read the
    files. What root writes belongs to the common owner of `models`.
    """
    targets = output_files(output)
    for target in targets:
        check_output(target)
    word = os.urandom(4).hex()
    pending: list[Path] = []
    fds: list[int] = []
    try:
        for target in targets:
            path = target.with_name(f".{target.name}.{word}.tmp")
            pending.append(path)  # Ctrl-C may come as soon as the file exists
            fds.append(open_pending(path))
            narrow(fds[-1], models)
            give_away(fds[-1], models)
        yield fds[0], fds[1], fds[2]
        # The database comes last: a reader of a new one finds its side files too.
        for path, target in reversed(list(zip(pending, targets, strict=True))):
            path.replace(target)
    finally:
        for fd in fds:
            os.close(fd)
        for path in pending:
            path.unlink(missing_ok=True)
