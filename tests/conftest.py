# SPDX-License-Identifier: Apache-2.0
"""What holds for every test: signals as a terminal's programs have them, and who runs where.

A shell starts what stands before `&` with SIGINT and SIGQUIT ignored, nohup with SIGHUP, and
children inherit that: programs under test could not be interrupted.
"""

from __future__ import annotations

import signal

import pytest


def pytest_configure() -> None:
    """Have signals that whoever started us ignores do again what they do by default."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            ctrl_c = number is signal.SIGINT
            signal.signal(number, signal.default_int_handler if ctrl_c else signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep on one worker what shares fixtures: the tests of a file, and all real builds."""
    for item in items:
        group = "oracles" if item.path.parent.name == "oracles" else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
