# SPDX-License-Identifier: Apache-2.0
"""Native library of etrace: reads traces and databases; needs the standard library only."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from libetrace.patterns import precompute_command_patterns

__all__ = ["precompute_command_patterns"]

#: name -> the module that has it, loaded when the name is first used: importing libetrace is cheap
_HOMES = {"precompute_command_patterns": "patterns"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
