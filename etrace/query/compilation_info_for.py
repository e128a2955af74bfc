# SPDX-License-Identifier: Apache-2.0
"""How files were compiled: command, include directories, definitions, objects."""

from __future__ import annotations

import os
from collections.abc import Sequence

from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.query.compiled import compilations, compiled, meant, objects, sources
from etrace.query.given.chosen import EVERYTHING, Given


def _unknown(image: Image, text: bytes) -> EtraceError:
    name = os.path.basename(text)  # noqa: PTH119  bytes
    near = [p for p in compiled(image) if os.path.basename(p) == name]  # noqa: PTH119
    hint = (
        f"did you mean {os.fsdecode(near[0])}?" if near else "cas compiled lists what it compiled"
    )
    return EtraceError(f"the build did not compile {os.fsdecode(text)}", hint)


def compilation_info_for(image: Image, given: Given = EVERYTHING) -> Sequence[int]:
    """Return rows of `compilations` of sources or objects; EtraceError for an unknown file."""
    rows = compilations(image, given)
    if given.paths is not None and given.is_exact:
        known = {path for row in rows for path in sources(image, row) + objects(image, row)}
        for text in given.paths:
            if known.isdisjoint(meant(image, [text])):
                raise _unknown(image, text)
    return rows
