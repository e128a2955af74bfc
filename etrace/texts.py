# SPDX-License-Identifier: Apache-2.0
"""Bytes of a build -> text that can be shown and written as UTF-8."""

from __future__ import annotations


def text_of(raw: bytes) -> str:
    r"""Return text; bytes that are not UTF-8 as \xNN."""
    return raw.decode("utf-8", "backslashreplace")
