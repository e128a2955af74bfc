# SPDX-License-Identifier: Apache-2.0
"""Writers of other formats, one module each; FORMATS lists them.

Each has `write(session, stream, options) -> None` and writes UTF-8 to a binary stream.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

from etrace.xray.session import Session

FORMATS: Mapping[str, str] = {
    "yaml": "records",
    "json": "records",
    "jsonl": "records",
    "csv": "records",
    "chrome": "chrome",
    "perfetto": "chrome",
    "folded": "folded",
    "speedscope": "speedscope",
    "parquet": "parquet",
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
    module: Any = importlib.import_module(f"etrace.xray.convert.{FORMATS[options.format]}")
    module.write(session, stream, options)
