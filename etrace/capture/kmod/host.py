# SPDX-License-Identifier: Apache-2.0
"""Everything outside the process that a session touches; tests replace it.

That is: tracefs, the module, the netlink peer, the collector, /run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from etrace.capture.kmod import collector
from etrace.capture.kmod.control import Control
from etrace.capture.kmod.module import KernelModules, Modules
from etrace.capture.kmod.state import StateDirectory
from etrace.capture.kmod.tracefs import Tracefs


def connect() -> Control:
    """Return a connection to the module of this kernel."""
    from etrace.capture.kmod.netlink import NetlinkControl  # noqa: PLC0415  slow to import

    return NetlinkControl()


@dataclass(frozen=True, slots=True)
class Host:
    """The machine."""

    states: StateDirectory = field(default_factory=StateDirectory)
    tracefs: Tracefs = field(default_factory=Tracefs)
    modules: Modules = field(default_factory=KernelModules)
    connect: Callable[[], Control] = connect
    collector: Callable[[], Path] = collector.program


def real() -> Host:
    """Return the machine as it is."""
    return Host()
