# SPDX-License-Identifier: Apache-2.0
"""What holds for every test: signals as a terminal's programs have them, what runs first and where.

A shell starts a command that `&` follows with SIGINT and SIGQUIT ignored, nohup with SIGHUP, and
children inherit that: programs under test could not be interrupted.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

pytest_plugins = ["runs.record"]


def pytest_configure() -> None:
    """Have signals that whoever started us ignores do again what they do by default."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            ctrl_c = number is signal.SIGINT
            signal.signal(number, signal.default_int_handler if ctrl_c else signal.SIG_DFL)


#: what takes longest starts first, so that no worker is left with it at the end
LONGEST = ("[guest-", "/oracles/", "/windows/", "/test_kmod_source.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with what takes longest. UsageError when a test is `long` without a reason."""
    unexplained = {m.args for item in items for m in item.iter_markers("long") if len(m.args) != 1}
    if unexplained:
        raise pytest.UsageError('pytest.mark.long needs a reason: pytest.mark.long("why")')

    def rank(item: pytest.Item) -> int:
        return next((n for n, part in enumerate(LONGEST) if part in item.nodeid), len(LONGEST))

    items.sort(key=rank)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test ETRACE_REPEAT times, to see how often it fails by chance."""
    if n := int(os.environ.get("ETRACE_REPEAT", "0")):
        metafunc.fixturenames.append("repetition")
        metafunc.parametrize("repetition", range(n))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep on one worker what shares fixtures: a file, a guest, all under Wine.

    pytest-xdist 3.8's own groups (xdist_group) do nothing with pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByFixtures(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            shared = (name for name in ("[guest-", "/windows/") if name in nodeid)
            return next(shared, file)

    return ByFixtures(config, log)
