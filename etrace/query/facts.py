# SPDX-License-Identifier: Apache-2.0
"""Facts about a whole database: counts, where the build began, versions, configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from libetrace.depend.configuration import KEYS, load
from libetrace.depend.threads import count_processes
from libetrace.image.file import Image

from etrace import __version__
from etrace.errors import EtraceError
from etrace.query.classes.kinds import Kinds
from etrace.query.executions import binaries
from etrace.spec.database import NONE

COMPILERS = ("gcc_spec", "gpp_spec", "clang_spec", "clangpp_spec", "armcc_spec")
LINKERS = ("ld_spec", "ar_spec")


def stat(image: Image) -> Mapping[str, int | None]:
    """Return counts by name; None for products that `cas pp` has not made yet."""
    executions, start = image["executions"], image["paths"]["opens.start"]
    kinds = Kinds(image)
    known = kinds.are_known
    n_opened = sum(start[i] != start[i + 1] for i in range(image["paths"].n_rows))
    return {
        "processes": count_processes(image),
        "execs": executions.n_rows,
        "execs_commands": sum(binary != NONE for binary in executions["binary"]),
        "execs_compilations": len(kinds.compilations) if known else None,
        "execs_linking": len(kinds.links) if known else None,
        "binaries": len(binaries(image)),
        "opens": image["opens"].n_rows,
        "paths": n_opened,
        "linked": image["linked"].n_rows if known else None,
        "linked_paths": len(kinds.linked_kind) if known else None,
        "compiled": image["compilations"].n_rows if known else None,
        "compiled_paths": len(kinds.compiled_type) if known else None,
        "patterns": image["patterns"].n_rows if "patterns" in image.tables else None,
    }


def root_pid(image: Image) -> int:
    """Return the upid of the first process without a parent in the trace."""
    executions = image["executions"]
    roots = (row for row, parent in enumerate(executions["parent"]) if parent == NONE)
    row = min(roots, key=lambda row: executions["start_ns"][row], default=NONE)
    if row == NONE:
        raise EtraceError(f"{image.path}: it has no executions", "was a command traced?")
    return int(executions["upid"][row])


def source_root(image: Image) -> bytes:
    """Return the directory where the build began; empty if unknown."""
    return os.fsencode(image.attributes.get("source_root", ""))


def version(image: Image) -> Mapping[str, str | int]:
    """Return the versions; `version` is the one that `cas cache --set-version` set."""
    return {
        "version": image.attributes.get("version", ""),
        "schema": image.schema,
        "etrace": __version__,
    }


def config(image: Image) -> Mapping[str, Any]:
    """Return the keys and the path of the database's .bas_config, or of the shipped one."""
    loaded = load(image.path.parent)
    return {"path": str(loaded.path), **{key: getattr(loaded, key) for key in KEYS}}


def patterns(image: Image, keys: tuple[str, ...]) -> list[str]:
    """Return the distinct globs of several keys (COMPILERS, LINKERS), in order."""
    values = config(image)
    return list(dict.fromkeys(pattern for key in keys for pattern in values[key]))
