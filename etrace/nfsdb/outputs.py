# SPDX-License-Identifier: Apache-2.0
"""The three files of a database: all of them appear whole, or none."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from libetrace.core.folders import give_away, narrow
from libetrace.image.file import replacing

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


@contextmanager
def pending_files(output: Path, models: Sequence[Path] = ()) -> Iterator[tuple[int, int, int]]:
    """Yield descriptors of the three files; they get their names when the block succeeds.

    A link at `output` is replaced, not followed. Only users who can read all `models` can read the
    files. What root writes belongs to the common owner of `models`.
    """
    targets = output_files(output)
    for target in targets:
        check_output(target)
    fds: list[int] = []
    with ExitStack() as stack:
        for target in targets:  # the database gets its name last: a reader finds its side files
            try:
                stream = stack.enter_context(replacing(target, is_new=True))
            except OSError as error:
                raise EtraceError(
                    f"cannot write {target.parent}: {error.strerror}",
                    "choose another place for the output",
                ) from error
            fds.append(stream.fileno())
            narrow(fds[-1], models)
            give_away(fds[-1], models)
        yield fds[0], fds[1], fds[2]
