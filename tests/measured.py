# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of a piece of work in this process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path


def memory_bytes(key: bytes) -> int:
    """Return a figure of this process: VmRSS, or VmHWM, the highest since it was set back."""
    status = Path("/proc/self/status").read_bytes()
    return int(status.partition(key + b":")[2].split()[0]) << 10


def start_of_memory() -> int:
    """Set the highest figure back; return the memory of now in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory_bytes(b"VmRSS")


def costs(work: Callable[[], object]) -> tuple[float, int]:
    """Return the seconds of CPU and the bytes of memory that some work takes at its peak."""
    gc.collect()
    before, began = start_of_memory(), time.process_time()
    work()
    return time.process_time() - began, memory_bytes(b"VmHWM") - before
