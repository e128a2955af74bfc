# SPDX-License-Identifier: Apache-2.0
"""builders.toml as values: the programs that run commands for targets."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files

MAKE, NINJA = "make", "ninja"


def _load() -> Mapping[bytes, str]:
    text = files("etrace.spec").joinpath("builders.toml").read_text(encoding="utf-8")
    return {name.encode(): tool for tool, names in tomllib.loads(text).items() for name in names}


#: name of a program's file -> MAKE or NINJA
TOOLS = _load()


def is_builder(path: bytes) -> bool:
    """Return whether the program of this path is make or ninja."""
    return path.rpartition(b"/")[2] in TOOLS
