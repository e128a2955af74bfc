# SPDX-License-Identifier: Apache-2.0
"""What a query reports beside its answer. Only commands print: they add a listener."""

from __future__ import annotations

from collections.abc import Callable

listeners: list[Callable[[str], object]] = []


def remark(text: str) -> None:
    """Give a line of text to all listeners."""
    for listener in listeners:
        listener(text)
