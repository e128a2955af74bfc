# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.json` -> a fresh `.nfsdb.img`, which replaces any file of that name.

Only here a damaged file, another schema or a foreign file is replaced, because the user asked for
it.
"""

from __future__ import annotations

from collections.abc import Mapping

from etrace.errors import EtraceError
from etrace.nfsdb.files import DatabaseFiles
from etrace.nfsdb.store import is_fresh, refresh, reopen, rewrite


def _is_right(files: DatabaseFiles) -> bool:
    try:
        return is_fresh(reopen(files.image), files)
    except (EtraceError, FileNotFoundError):
        return False


def update_image(
    files: DatabaseFiles, said: Mapping[str, str] | None = None, *, force: bool = False
) -> bool:
    """Make a stale or damaged image again; return whether it did. Keeps what the user set.

    EtraceError when there is no JSON, OSError.
    """
    if not force and _is_right(files):
        if said:
            image = reopen(files.image)
            known = {**(image.attributes.get("said") or {}), **said}
            rewrite(image, [], {**known, "said": known})
        return False
    if not files.json.exists():
        raise EtraceError(f"{files.json}: no such file", "make one: cas parse")
    refresh(files, said)
    return True
