# SPDX-License-Identifier: Apache-2.0
"""The kernel module as a backend of `etrace run`: whether it works here, and the capture."""

from __future__ import annotations

import os

from etrace.capture.kmod.system import presence
from etrace.errors import CaptureError, EtraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from etrace.capture.backend import Outcome, Probe, Progress
    from etrace.capture.kmod.host import Host
    from etrace.capture.options import Options


class KmodBackend:
    """The kernel module: the cheapest way, for root, and through etraced for its group."""

    name = "kmod"
    description = "kernel module over ftrace; needs root or group etrace; costs least"

    def __init__(self, host: Host | None = None) -> None:
        self._host = host

    @property
    def host(self) -> Host:
        """The machine, looked at when first needed."""
        from etrace.capture.kmod.host import Host

        return self._host or Host()

    def obstacle(self) -> Probe | None:
        """See Backend.obstacle: no root, no module, no collector, a session already."""
        from etrace.capture.backend import Probe

        if os.geteuid() != 0:
            from etrace.capture.remote import service

            found = service.obstacle()
            served = os.path.exists(service.SOCKET)
            if not found or served or os.path.exists(presence.LOADED_MODULES) or presence.source():
                return found
            return _no_module()  # etraced could not load one either
        from etrace.capture.kmod.stage import already

        host = self.host
        try:
            if not host.modules.source():
                return _no_module()
            host.tracefs.mount()
            host.collector()
            message = already(host)
            return Probe(False, message, "end it: sudo etrace stop") if message else None
        except CaptureError as error:
            return Probe(False, error.message, error.hint)

    def probe(self) -> Probe:
        """Load the module and ask it."""
        if (obstacle := self.obstacle()) is not None:
            return obstacle
        if os.geteuid() != 0:
            from etrace.capture.remote import service

            return service.probe()
        from etrace.capture.backend import Probe
        from etrace.capture.kmod.beginning import attempt_to_load

        try:
            attempt_to_load(self.host)
        except EtraceError as error:
            return Probe(False, error.message, error.hint)
        return Probe(True, "the module is loaded and answers")

    def is_out_of_question(self) -> bool:
        """See Backend.is_out_of_question: not root and no etraced to ask, or no module anywhere."""
        if os.geteuid() != 0:
            from etrace.capture.remote import service

            return not service.may_be_asked()
        return self._host is None and not presence.source()

    def become(self, _command: list[str], _options: Options) -> None:
        """See Backend.become: a session has to be ended."""

    def run(
        self, command: list[str], options: Options, on_progress: Callable[[Progress], None] | None
    ) -> Outcome:
        """Trace `command`; see Backend.run."""
        if os.geteuid() != 0:
            from etrace.capture.remote import client

            return client.trace(command, options, on_progress)
        from etrace.capture.kmod.run import trace

        return trace(self.host, command, options, on_progress)


def _no_module() -> Probe:
    from etrace.capture.backend import Probe

    way = "use a kernel that loads modules (Debian's do), or trace without the module: etrace run"
    if os.path.exists(presence.LOADED_MODULES):
        way = "build and install it: docs/capture-kmod.md"
    return Probe(False, "there is no etrace.ko for this kernel", way, expected=True)
