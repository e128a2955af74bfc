# SPDX-License-Identifier: Apache-2.0
"""A bill and another tool's document -> the files that only one of them names.

Documents: SPDX 3 and 2, CycloneDX, in-toto, or a text with a path a line. Two files are the same
when their names are: absolute, from the source root, or when one name ends in the other and no
second one does.
"""

from __future__ import annotations

import bisect
import json
import os
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from libetrace.core.regular_file import read_regular

from etrace.errors import EtraceError
from etrace.export.sbom.bill import Bill
from etrace.export.sbom.parts import BillFile

MAX_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Comparison:
    """Files that both name, those of the bill alone and those of the other document alone."""

    n_common: int
    own: list[BillFile]
    other: list[str]
    #: of both, with different SHA-256
    different: list[str]


def compare(bill: Bill, path: Path) -> Comparison:
    """Compare a bill with the document in a file. EtraceError, OSError."""
    theirs = read_names(path)
    root = os.fsdecode(bill.image.attributes.get("source_root", "")).rstrip("/")
    own = {_absolute(file.name, root): file for file in bill.files.values()}
    matches = _matches(own, theirs, root)
    different = sorted(
        own[mine].name
        for name, mine in matches.items()
        if theirs[name] and own[mine].content.sha256 not in ("", theirs[name])
    )
    found = set(matches.values())
    return Comparison(
        len(found),
        [file for name, file in own.items() if name not in found],
        sorted(theirs.keys() - matches.keys()),
        different,
    )


def _absolute(name: str, root: str) -> str:
    return posixpath.normpath(posixpath.join(root, name))


def _matches(own: Iterable[str], theirs: Iterable[str], root: str) -> dict[str, str]:
    """Return their names -> ours of the same files."""
    known = set(own)
    ends: defaultdict[str, list[str]] = defaultdict(list)
    for name in known:
        ends[name.rpartition("/")[2]].append(name[::-1])
    for each in ends.values():
        each.sort()
    found: dict[str, str] = {}
    for name in theirs:
        absolute = _absolute(name, root)
        if absolute in known:
            found[name] = absolute
            continue
        tail = "/" + posixpath.normpath(name)
        if tail.startswith(("//", "/../")):
            continue
        backwards, near = tail[::-1], ends.get(name.rpartition("/")[2], [])
        first = bisect.bisect_left(near, backwards)
        own_near = [each for each in near[first : first + 2] if each.startswith(backwards)]
        if len(own_near) == 1:
            found[name] = own_near[0][::-1]
    return found


# ---- documents ----


def read_names(path: Path) -> Mapping[str, str]:
    """Return the names of the files in a document, with their SHA-256 or nothing. EtraceError."""
    raw = read_regular(os.fsencode(path), MAX_BYTES, is_text=True)
    if not raw.lstrip().startswith((b"{", b"[")):
        lines = raw.decode("utf-8", "backslashreplace").split("\n")
        return {line.rstrip("\r"): "" for line in lines if line.strip()}
    try:
        said = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise EtraceError(
            f"{path}: {error}", "--compare takes SPDX, CycloneDX, in-toto or a list of paths"
        ) from error
    found = dict(_named(said)) if isinstance(said, dict) else {}
    if not found:
        raise EtraceError(
            f"{path}: names no files", "--compare takes SPDX, CycloneDX, in-toto or a list of paths"
        )
    return found


def _named(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in _dicts(said.get("@graph")):
        if each.get("type", each.get("@type")) in ("software_File", "File"):
            hashes = _dicts(each.get("verifiedUsing"))
            yield _pair(each.get("name"), hashes, "algorithm", "hashValue")
    for each in _dicts(said.get("files")):
        yield _pair(
            each.get("fileName"), _dicts(each.get("checksums")), "algorithm", "checksumValue"
        )
    for each in _dicts(said.get("components")):
        if each.get("type") == "file":
            yield _pair(each.get("name"), _dicts(each.get("hashes")), "alg", "content")
    predicate = said.get("predicate")
    definition = predicate.get("buildDefinition") if isinstance(predicate, dict) else None
    materials = definition.get("resolvedDependencies") if isinstance(definition, dict) else None
    for each in (*_dicts(said.get("subject")), *_dicts(materials)):
        digest = each.get("digest")
        if each.get("name") and not str(each.get("uri", "")).startswith("git+"):
            sha256 = digest.get("sha256", "") if isinstance(digest, dict) else ""
            yield str(each["name"]), str(sha256)


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _pair(name: object, hashes: list[dict[str, Any]], key: str, value: str) -> tuple[str, str]:
    found = [
        str(each.get(value, ""))
        for each in hashes
        if str(each.get(key, "")).lower().replace("-", "") == "sha256"
    ]
    return str(name or ""), found[0].lower() if found else ""
