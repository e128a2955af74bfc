# SPDX-License-Identifier: Apache-2.0
"""An earlier output of `etrace check`, JSON or SARIF -> which faults are new.

A fault is that of before when id, file and first target are. Where equal ones are in several
folders, as many as before are old.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from libetrace.core.regular_file import read_regular

from etrace.check.kinds import Fault
from etrace.check.sarif import FINGERPRINT
from etrace.errors import EtraceError

MAX_BYTES = 256 << 20


def read(path: Path) -> Counter[str]:
    """Return the keys of an earlier output. EtraceError for something else; OSError."""
    try:
        return Counter(_keys(json.loads(read_regular(path, MAX_BYTES, is_text=True))))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EtraceError(
            f"{path}: not an output of etrace check",
            "write one: etrace check --json > FILE, or with --format sarif",
        ) from error


def _keys(content: dict[str, Any]) -> Iterator[str]:
    if "runs" in content:
        for run in content["runs"]:
            for result in run["results"]:
                yield str(result["partialFingerprints"][FINGERPRINT])
        return
    for name in ("faults", "accepted", "old"):
        for fault in content[name] if name != "old" else content.get(name, ()):
            yield str(fault["key"])


def split(
    faults: Iterable[Fault], known: Iterable[Fault], before: Counter[str]
) -> tuple[list[Fault], list[Fault], int]:
    """Return new faults, old ones, and how many of before are gone.

    `known` are other faults that are still there, the accepted ones.
    """
    left = before - Counter(fault.key for fault in known)
    new, old = list[Fault](), list[Fault]()
    for fault in faults:
        is_old = left[fault.key] > 0
        left[fault.key] -= is_old
        (old if is_old else new).append(fault)
    return new, old, sum(left.values())
