# SPDX-License-Identifier: Apache-2.0
"""The golden Lua build (tests/golden) as a database directory, without products."""

from __future__ import annotations

import lzma
from pathlib import Path

from libetrace.depend.configuration import load
from trace_texts import parse_bytes

from etrace.nfsdb.store import open_database
from etrace.postprocess.run import postprocess

GOLDEN = Path(__file__).resolve().parent / "golden"
ROOT = "/tmp/b/lua-5.4.4"


def write_lua(directory: Path) -> Path:
    """Write trace, JSON and image of the Lua build; returns the directory.

    Files are taken as gone (no lstat): the same on every machine.
    """
    trace = lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes())
    directory.mkdir(exist_ok=True)
    (directory / ".nfsdb").write_bytes(trace)
    names = (".nfsdb.json", ".nfsdb.env.json", ".nfsdb.mounts.json")
    for name, text in zip(names, parse_bytes(trace), strict=True):
        (directory / name).write_bytes(text)
    open_database(directory)
    return directory


def write_processed_lua(directory: Path) -> Path:
    """Write the Lua build with all that `cas pp` adds; returns the directory.

    Compilers are not asked for their own directories: the same on every machine.
    """
    write_lua(directory)
    image = open_database(directory)
    postprocess(image, load(directory), ("wrappers", "patterns", "linked", "compilations"))
    return directory
