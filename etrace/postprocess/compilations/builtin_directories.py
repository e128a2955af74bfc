# SPDX-License-Identifier: Apache-2.0
"""A stage of gcc in the trace -> the directories that it searches for headers by itself.

Nothing is run: where `cc1` lies says where its own headers are, `-imultiarch` and `-imultilib`
that the driver gave it say the rest. In the order of gcc/cppdefault.cc, for compilers of the
machine itself; who asks drops those that never existed. A cross compiler, one that opened nothing
in /usr/include, and one with a sysroot are not guessed at. clang's -cc1 has them on its command
line; a clang that compiles in its own process does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

#: <prefix>/<lib>/gcc/<triple>/<version>/cc1
PLACE = re.compile(
    rb"(?P<prefix>/.*)/(?:lib|lib64|libexec)/gcc/(?P<triple>[^/]+)/(?P<version>[^/]+)/cc1(?:plus)?"
)
HEADERS = b"/usr/include/"
LOCAL = b"/usr/local/include"
CXX = "c++"


class Stage(NamedTuple):
    """One run of cc1 or cc1plus: `opened` are the paths that it opened."""

    binary: bytes
    argv: Sequence[bytes]
    opened: Sequence[bytes]


def derive(stage: Stage, language: str, *, has_cxx: bool = True) -> tuple[bytes, ...]:
    """Return the directories that may exist, in the order of the search; none when unknown.

    `has_cxx` is False with -nostdinc++.
    """
    place = PLACE.fullmatch(stage.binary)
    if place is None or not any(path.startswith(HEADERS) for path in stage.opened):
        return ()
    prefix, triple, version = place["prefix"], place["triple"], place["version"]
    multiarch, multilib = _value(stage.argv, b"-imultiarch"), _value(stage.argv, b"-imultilib")
    own = [b"%s/%s/gcc/%s/%s" % (prefix, lib, triple, version) for lib in (b"lib", b"lib64")]
    cxx: list[bytes] = []
    if language in (CXX, "objective-c++") and has_cxx:
        top = b"%s/include/c++/%s" % (prefix, version)
        tools = (b"%s/include/%s/c++/%s" % (prefix, triple, version), b"%s/%s" % (top, triple))
        cxx = [top, *(b"/".join(filter(None, (each, multilib))) for each in tools)]
        cxx.append(top + b"/backward")
    return (
        *cxx,
        *(each + b"/include" for each in own),
        *_with(LOCAL, multiarch),
        *(each + b"/include-fixed" for each in own),
        b"%s/%s/include" % (prefix, triple),
        *_with(HEADERS.rstrip(b"/"), multiarch),
    )


def _value(argv: Sequence[bytes], flag: bytes) -> bytes:
    at = argv.index(flag) + 1 if flag in argv else len(argv)
    return argv[at] if at < len(argv) else b""


def _with(directory: bytes, multiarch: bytes) -> list[bytes]:
    return [b"%s/%s" % (directory, multiarch), directory] if multiarch else [directory]
