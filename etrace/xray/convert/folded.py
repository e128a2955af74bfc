# SPDX-License-Identifier: Apache-2.0
"""Folded stacks, for flamegraph.pl, inferno and speedscope: self time in nanoseconds, or calls."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from etrace.xray.session import Session
from etrace.xray.stacks import stacks

if TYPE_CHECKING:
    from etrace.xray.convert import Options


def write(session: Session, stream: IO[bytes], options: Options) -> None:
    """Write one line a path."""
    found = stacks(session, deduce=options.deduce)
    for line in found.folded("count" if options.weight == "count" else "self"):
        names, _, value = line.rpartition(" ")
        number = int(value)
        if options.weight != "count":
            number = session.clock.ns(number)
        stream.write(f"{names} {number}\n".encode(errors="replace"))
