# SPDX-License-Identifier: Apache-2.0
"""Writers of other formats; FORMATS has the module and the function of each.

A writer is called `write(session, stream, options) -> None` and writes UTF-8 to a binary stream.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO

from etrace.xray.session import Session

FORMATS: Mapping[str, str] = {
    **dict.fromkeys(("yaml", "json", "jsonl", "csv"), "records.write"),
    **dict.fromkeys(("chrome", "perfetto"), "chrome.write"),
    "folded": "stacks.write_folded",
    "speedscope": "stacks.write_speedscope",
    "parquet": "parquet.write",
}


def _nothing(_done: int, _total: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Options:
    """`sort_by_time`: records of all threads mixed; otherwise one thread after the other."""

    format: str
    sort_by_time: bool = True
    weight: str = "self"
    deduce: bool = False
    #: called with (records or calls done, all) from time to time
    progress: Callable[[int, int], None] = _nothing


def write(session: Session, stream: IO[bytes], options: Options) -> None:
    """Write the session's logs in a format of FORMATS."""
    module, _, function = FORMATS[options.format].partition(".")
    getattr(importlib.import_module(f"etrace.xray.convert.{module}"), function)(
        session, stream, options
    )
