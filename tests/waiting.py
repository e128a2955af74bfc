# SPDX-License-Identifier: Apache-2.0
"""Waiting for something to happen, and giving up after a while."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something to become true."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.02)
