# SPDX-License-Identifier: Apache-2.0
"""Versions of the database, of its schema and of this program."""

from __future__ import annotations

from collections.abc import Mapping

from libetrace.image.file import Image

from etrace import __version__


def version(image: Image) -> Mapping[str, str | int]:
    """Return them: `version` is what `cas cache --set-version` gave the database."""
    return {
        "version": image.attributes.get("version", ""),
        "schema": image.schema,
        "etrace": __version__,
    }
