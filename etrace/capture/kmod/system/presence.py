# SPDX-License-Identifier: Apache-2.0
"""Whether there is an etrace.ko for this kernel, and where.

Each `etrace run` of root asks: no pathlib, no platform.
"""

from __future__ import annotations

import os

import etrace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "etrace"
FILE = "etrace.ko"
LOADED = f"/sys/module/{NAME}"
MODULES = "/lib/modules"
#: a kernel without CONFIG_MODULES has none
LOADED_MODULES = "/proc/modules"
VERMAGIC = b"vermagic="


def release() -> str:
    """Return the release of the running kernel."""
    return os.uname().release


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def is_built_in() -> bool:
    """Whether the kernel was built with the module in it: it then has no folder in sysfs."""
    return f"/{FILE}\n".encode() in _content(f"{MODULES}/{release()}/modules.builtin")


def is_loaded() -> bool:
    """Whether the kernel has the module."""
    return os.path.isdir(LOADED) or is_built_in()


def is_indexed() -> bool:
    """Whether modprobe knows the module for this kernel."""
    index = b"\n" + _content(f"{MODULES}/{release()}/modules.dep")
    return f"/{FILE}".encode() in index or f"\n{FILE}".encode() in index


def candidates() -> Iterator[str]:
    """Yield where a module lies that modprobe does not know: the package, the tree it runs from."""
    package = os.path.dirname(os.path.realpath(etrace.__file__))
    yield f"{package}/libexec/{FILE}"
    yield f"{os.path.dirname(package)}/kmod/{FILE}"


def built_for(file: str | os.PathLike[str]) -> str:
    """Return the kernel release that a module file was built for; empty when it does not say."""
    _, found, rest = _content(file).partition(VERMAGIC)
    return rest.split(b" ", 1)[0].split(b"\0", 1)[0].decode(errors="replace") if found else ""


def fitting_candidate() -> str:
    """Return the first candidate that was built for this kernel, or an empty path."""
    return next((str(path) for path in candidates() if built_for(path) == release()), "")


def source() -> str:
    """Return where the module would be loaded from, empty when it is nowhere."""
    if is_loaded():
        return "loaded"
    return "modprobe" if is_indexed() else fitting_candidate()
