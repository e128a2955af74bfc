# SPDX-License-Identifier: Apache-2.0
"""The configuration that `cas pp` works with, and its patterns of compilers and linkers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from libetrace.image.file import Image

from etrace.postprocess.config import KEYS, load

COMPILERS = ("gcc_spec", "gpp_spec", "clang_spec", "clangpp_spec", "armcc_spec")
LINKERS = ("ld_spec", "ar_spec")


def config(image: Image) -> Mapping[str, Any]:
    """Return the keys of the database's .bas_config, or of the shipped one, and where it is."""
    loaded = load(image.path.parent)
    return {"path": str(loaded.path), **{key: getattr(loaded, key) for key in KEYS}}


def patterns(image: Image, keys: tuple[str, ...]) -> list[str]:
    """Return the globs of several keys (COMPILERS, LINKERS), each once, in their order."""
    values = config(image)
    return list(dict.fromkeys(pattern for key in keys for pattern in values[key]))
