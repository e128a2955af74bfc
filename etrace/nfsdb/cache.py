# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.json` -> a fresh `.nfsdb.img`, whatever lay there before.

The one place that replaces what is no image, is damaged or is of another schema: the user asked.
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
    """Make the image again when it is not right; whether it was. What the user said is kept.

    EtraceError when there is no JSON to make it of, OSError.
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
