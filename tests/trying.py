# SPDX-License-Identifier: Apache-2.0
"""How long tests wait for an event, and how often they try what looks for rare faults."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

#: what is not there by then never comes: no test passes or fails for being quick or slow
LIMIT_S = 200


def until(condition: Callable[[], object], what: Callable[[], object] = str) -> None:
    """Wait for something to become true; `what` says what is there instead."""
    give_up = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < give_up, f"it did not happen: {what()}"
        time.sleep(0.02)


def amount(usual: int, long: int) -> int:
    """Return how often to try: `long` in `make test-long`, which sets ETRACE_LONG."""
    return long if os.environ.get("ETRACE_LONG") else usual
