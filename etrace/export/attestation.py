# SPDX-License-Identifier: Apache-2.0
"""The files of a database and documents of it -> one statement with their digests, and back.

An in-toto Statement v1: whoever signs it vouches for the trace, for the image that was made of it
and for the documents. Names are relative to the statement, so all may be moved together.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from libetrace.core.regular_file import open_regular, read_json
from libetrace.image.file import Image

import etrace
from etrace.errors import EtraceError
from etrace.nfsdb.files import name_files
from etrace.nfsdb.hash_records import SUFFIX

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:linux-build-tracer:attestation:v1"
MAX_BYTES = 64 << 20
PIECE = 1 << 20
HINT = "make one: etrace attest write -o FILE"


@dataclass(frozen=True, slots=True)
class Checked:
    """A file of a statement; `state` is ok, changed, missing or unreadable."""

    name: str
    state: str


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a regular file. OSError."""
    digest = hashlib.sha256()
    with open(open_regular(os.fsencode(path)), "rb") as stream:  # noqa: PTH123  a descriptor
        while piece := stream.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def files_of(image: Image) -> list[Path]:
    """Return the files of a database that are there, the trace first. EtraceError without it."""
    files = name_files(image.path.with_suffix(""))
    traces = [files.trace, files.trace.with_name(f"{files.trace.name}.zst")]
    found = [path for path in traces if path.is_file()]
    if not found:
        raise EtraceError(
            f"{files.trace}: there is no trace", "what it vouches for is the trace: keep it"
        )
    others = (files.image, files.json, files.env, files.mounts, files.responses)
    sides = (files.trace.with_name(files.trace.name + suffix) for suffix in (".rsp", SUFFIX))
    rest = [*others, *sides]
    return found + [path for path in rest if path.is_file()]


def statement(paths: Iterable[Path], folder: Path, created: str) -> dict[str, Any]:
    """Return the statement about some files, named from a directory. OSError."""
    subjects = {os.path.relpath(path, folder): {"sha256": digest_of(path)} for path in paths}
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": subjects[name]} for name in sorted(subjects)],
        "predicateType": PREDICATE,
        "predicate": {"created": created, "tool": f"etrace {etrace.__version__}"},
    }


def check(path: Path) -> Iterator[Checked]:
    """Yield the state of each file that a statement names. EtraceError, OSError."""
    for name, sha256 in _subjects(path).items():
        there = path.parent / name
        try:
            state = "ok" if digest_of(there) == sha256 else "changed"
        except FileNotFoundError:
            state = "missing"
        except OSError:
            state = "unreadable"
        yield Checked(name, state)


def _text(name: object) -> str:
    """Return a name of JSON, which may have halves of characters, as a file may have it."""
    return str(name).encode("utf-8", "backslashreplace").decode()


def _subjects(path: Path) -> Mapping[str, str]:
    try:
        said: Any = read_json(path, MAX_BYTES)
        if said["_type"] != STATEMENT or said["predicateType"] != PREDICATE:
            raise EtraceError(f"{path}: a statement about something else", HINT)
        found = {_text(each["name"]): str(each["digest"]["sha256"]) for each in said["subject"]}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise EtraceError(f"{path}: not a statement of etrace attest", HINT) from error
    if not found:
        raise EtraceError(f"{path}: names no files", HINT)
    return found
