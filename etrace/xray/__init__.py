# SPDX-License-Identifier: Apache-2.0
"""XRay logs: what instrumented functions of a program did, and how long they took.

    >>> from etrace import xray
    >>> log = xray.read("logs/tail_pie19.fdr.xray")
    >>> calls = log.calls()
    >>> functions = xray.InstrumentationMap.from_elf("bin/tail_pie19")
    >>> functions.name(calls["function"][0])
    'main'

The native part, from bytes to columns, is libetrace.xray; docs/xray.md is for people.
"""

from etrace.xray.log import Calls, Log, read
from etrace.xray.names import InstrumentationMap

__all__ = ["Calls", "InstrumentationMap", "Log", "read"]
