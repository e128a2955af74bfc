# SPDX-License-Identifier: Apache-2.0
"""Everything outside the process that a session touches; tests replace it.

That is: tracefs, the module, the netlink peer, the collector, /run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from etrace.capture.kmod.loading.module import KernelModules, Modules
from etrace.capture.kmod.sessions import collector
from etrace.capture.kmod.sessions.state import StateDirectory
from etrace.capture.kmod.system.control import Control
from etrace.capture.kmod.system.tracefs import Tracefs


def connect() -> Control:
    """Return a connection to the module of this kernel."""
    from etrace.capture.kmod.system.netlink import NetlinkControl  # noqa: PLC0415  slow to import

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
