# SPDX-License-Identifier: Apache-2.0
"""Products of an image -> their keys in the `.nfsdb.json` beside it.

The JSON is written whole and renamed, then the image remembers it as its source. After an
interruption between the two, the image is stale and is made again from the JSON, which has the
products.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libetrace.image.file import Image, replacing
from libetrace.image.freshness import remember

from etrace.nfsdb.build import remember_sources
from etrace.nfsdb.files import DatabaseFiles, locate
from etrace.nfsdb.store import reopen, rewrite
from etrace.nfsdb.to_json import write_json, write_json_files

#: attribute of an image: the `phases` in its JSON when that was last written
ATTRIBUTE = "phases_in_json"


def unknown_keys(image: Image) -> int:
    """Return the number of unknown keys in the JSON, which writing it again would lose."""
    return int(image.attributes.get("unknown_keys", 0))


def is_due(image: Image, *, is_new: bool) -> bool:
    """Tell whether the JSON lacks products of the image; `is_new`: some were just made.

    Without a JSON there is nothing to write: an image alone is a complete database.
    """
    known = image.attributes.get(ATTRIBUTE)
    return locate(image.path).json.exists() and (is_new or known != image.attributes.get("phases"))


def _write(image: Image, path: Path) -> None:
    with replacing(path) as stream:
        write_json(image, stream)


def add_json(files: DatabaseFiles, jobs: int) -> None:
    """Write the JSON files of a database that has none. EtraceError, OSError."""
    image = reopen(files.image)
    write_json_files(image, files.json, [files.image], jobs=jobs)
    phases = image.attributes.get("phases")
    rewrite(image, [], {"sources": remember_sources(files), ATTRIBUTE: phases})


def write_back(path: Path) -> None:
    """Write the JSON file of the image at `path` again, with its products. EtraceError, OSError."""
    image = reopen(path)
    files = locate(path)
    _write(image, files.json)
    sources: dict[str, Any] = dict(image.attributes.get("sources") or {})
    sources["json"] = remember(files.json)
    rewrite(image, [], {"sources": sources, ATTRIBUTE: image.attributes.get("phases")})
    image.close()
