# SPDX-License-Identifier: Apache-2.0
"""The directory in which the build was started."""

from __future__ import annotations

import os

from libetrace.image.file import Image


def source_root(image: Image) -> bytes:
    """Return its path, empty when the trace did not tell."""
    return os.fsencode(image.attributes.get("source_root", ""))
