# SPDX-License-Identifier: Apache-2.0
"""Files that the build opened."""

from __future__ import annotations

from libetrace.image.file import Image

from etrace.query.given import chosen
from etrace.query.given.chosen import EVERYTHING, Given


def ref_files(image: Image, given: Given = EVERYTHING, *, original: bool = False) -> list[bytes]:
    """Return the paths of opened files, each once, in order of bytes."""
    return chosen.paths(image, chosen.opens(image, given), original=original)
