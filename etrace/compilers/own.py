# SPDX-License-Identifier: Apache-2.0
"""Tools that a user describes: `$XDG_CONFIG_HOME/etrace/compilers/*.toml`.

The tables are those of etrace/compilers (docs/exports.md). Who can write these files
decides what etrace takes for a compiler, so they must belong to this user or root, and nobody else
may write to them. What they describe is never run (`cas pp --ask-compilers`).
"""

from __future__ import annotations

import hashlib
import os
import stat
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from etrace.errors import SpecError

WRITABLE = stat.S_IWGRP | stat.S_IWOTH
LISTS = ("names", "paths", "prefixes", "objects", "temporary", "intermediate")
TEXTS = ("extends", "kind", "family", "language", "role", "style", "default_output", "response")


def directory() -> Path:
    """Return the directory of these files; the XDG specification ignores relative paths."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    home = Path(base) if base.startswith("/") else Path("~/.config")
    return home.expanduser() / "etrace" / "compilers"


@cache
def files(folder: Path) -> Mapping[Path, bytes]:
    """Return the files of a directory and their content. SpecError when one may not be used."""
    try:
        return {path: _read(path) for path in sorted(folder.glob("*.toml"))}
    except OSError as error:
        raise SpecError(
            f"{error.filename}: {error.strerror}", "make it readable, or remove it"
        ) from error


def _read(path: Path) -> bytes:
    with path.open("rb") as stream:
        status = os.fstat(stream.fileno())
        if status.st_uid not in (0, os.geteuid()):
            raise SpecError(f"{path} belongs to another user", "copy it, or remove it")
        if status.st_mode & WRITABLE:
            raise SpecError(f"{path} can be written by others", f"chmod go-w {path}")
        return stream.read()


def digest() -> str:
    """Return a number for the content of all files, empty when there are none."""
    found = files(directory())
    text = b"".join(b"%d\n%s" % (len(content), content) for content in found.values())
    return hashlib.sha256(text).hexdigest()[:16] if found else ""


def tables() -> dict[str, dict[str, Any]]:
    """Return the tables of all files by name. SpecError names the file and what is wrong."""
    found: dict[str, dict[str, Any]] = {}
    for path, content in files(directory()).items():
        try:
            raw = tomllib.loads(content.decode())
        except ValueError as error:
            raise SpecError(f"{path}: {error}", "docs/exports.md has an example") from error
        for name, table in raw.items():
            if name in found:
                raise SpecError(f"{path}: {name} is in another file too", "give it another name")
            found[name] = _checked(path, name, table)
    return found


def _checked(path: Path, name: str, table: Any) -> dict[str, Any]:
    """Return a table if its values have the right types, with what is never done with it."""
    if not isinstance(table, dict):
        raise SpecError(f"{path}: {name} is not a table", f"write [{name}]")
    options = table.get("options", {})
    if not isinstance(options, dict):
        raise SpecError(f"{path}: {name}.options is not a table", f"write [{name}.options]")
    lists = {key: table[key] for key in LISTS if key in table}
    for key, value in (lists | {f"options.{key}": value for key, value in options.items()}).items():
        if not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise SpecError(
                f"{path}: {name}.{key} must be a list of strings", f'write {key} = ["..."]'
            )
    for key in TEXTS:
        if not isinstance(table.get(key, ""), str):
            raise SpecError(f"{path}: {name}.{key} must be a string", f'write {key} = "..."')
    return {**table, "probe": False}
