# SPDX-License-Identifier: Apache-2.0
"""What a parser makes of a trace, read back from its files: the same shape for every parser."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reference_parser

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Products:
    """The three files of a parse and whether there was anything to report."""

    raw: bytes  #: the main file as it is
    env: dict[str, list[int]]
    mounts: list[Entry]
    has_problems: bool

    @property
    def entries(self) -> list[Entry]:
        """The main file's value."""
        value: list[Entry] = json.loads(self.raw)
        return value


def parse_by_reference(inputs: list[bytes]) -> Products:
    """Parse with tests/reference_parser.py."""
    parsed = reference_parser.parse(inputs)
    raw = reference_parser.entries_bytes(parsed.entries)
    return Products(raw, parsed.env, parsed.mounts, bool(parsed.problems))


def parse(inputs: list[bytes], directory: Path) -> Products:
    raise NotImplementedError
