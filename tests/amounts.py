# SPDX-License-Identifier: Apache-2.0
"""How much the tests that look for rare faults do: little each time, much in `make test-long`."""

from __future__ import annotations

import os


def amount(usual: int, long: int) -> int:
    """Return how often to try: `long` in `make test-long`, which sets ETRACE_LONG."""
    return long if os.environ.get("ETRACE_LONG") else usual
