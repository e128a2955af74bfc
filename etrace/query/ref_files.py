# SPDX-License-Identifier: Apache-2.0
"""Files that the build opened."""

from __future__ import annotations

from collections.abc import Sequence

from libetrace.image import Image


def ref_files(image: Image) -> Sequence[bytes]:
    """Return the paths of all opened files, each once, in order of bytes."""
    start = image["paths"]["opens.start"]
    rows = range(image["paths"].n_rows)
    return [image.path_string(row) for row in rows if start[row] != start[row + 1]]
