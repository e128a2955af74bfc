# SPDX-License-Identifier: Apache-2.0
"""The table `usage` of an image -> what executions used, None where it is not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from libetrace.image.file import Image

from etrace.errors import UsageError
from etrace.spec.database import NONE

TABLE = "usage"
COLUMNS = (
    *("user_ns", "system_ns", "max_rss_bytes", "rchar_bytes", "wchar_bytes"),
    *("n_voluntary_switches", "n_forced_switches"),
)
#: CPU time: that of the program and that of the kernel
CPU = "cpu_ns"
KEYS = (CPU, *COLUMNS)
#: suffix of a number -> by unit of the key, how many of it
UNITS = {
    "ns": {"ns": 1, "us": 1000, "ms": 1000_000, "s": 1000_000_000},
    "bytes": {"B": 1, "kB": 1000, "MB": 1000_000, "GB": 1000_000_000},
}


class Usages:
    """What the executions of one image used."""

    def __init__(self, image: Image) -> None:
        self.is_known = TABLE in image.tables
        self._columns = {name: image[TABLE][name] for name in COLUMNS} if self.is_known else {}

    def value(self, row: int, key: str) -> int | None:
        """Return one number of a row of `executions`."""
        if not self.is_known:
            return None
        if key != CPU:
            found: int = self._columns[key][row]
            return None if found == NONE else found
        user, system = self.value(row, "user_ns"), self.value(row, "system_ns")
        return None if user is None or system is None else user + system

    def record(self, row: int) -> Mapping[str, int | None]:
        """Return all numbers of a row of `executions`, empty when the trace has none."""
        return {key: self.value(row, key) for key in KEYS} if self.is_known else {}

    def at_least(self, rows: Iterable[int], key: str, least: int) -> list[int]:
        """Return the rows that used so much; rows whose use is unknown are left out."""
        return [row for row in rows if (used := self.value(row, key)) is not None and used >= least]

    def total(self, rows: Iterable[int], key: str) -> int | None:
        """Return the sum over rows of what is known, None when nothing is."""
        known = [used for row in rows if (used := self.value(row, key)) is not None]
        return sum(known) if known else None


def read_least(text: str) -> tuple[str, int]:
    """Return key and number of `cpu_ns=1s`, `max_rss_bytes=100MB`, `n_forced_switches=10`."""
    key, _, number = text.partition("=")
    if key not in KEYS:
        raise UsageError(f"--at-least {text}: no such key", f"keys: {', '.join(KEYS)}")
    digits = number.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    units = UNITS.get(key.rpartition("_")[2], {})
    unit = number[len(digits) :]
    try:
        return key, round(float(digits) * (units[unit] if unit else 1))
    except (ValueError, KeyError, OverflowError) as error:
        shown = f" and a unit ({', '.join(units)})" if units else ""
        raise UsageError(f"--at-least {text}: {number!r} is not a number{shown}") from error
