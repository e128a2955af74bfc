# SPDX-License-Identifier: Apache-2.0
"""The findings of `etrace advise` -> the part of the page that shows them."""

from __future__ import annotations

import os
from typing import Any

from etrace.advise.finding import Evidence, Finding
from etrace.advise.rules import findings
from etrace.errors import EtraceError
from etrace.report.pack import Pack, shown
from etrace.report.uses import Contents

#: simulations of more commands would take as long as all other parts of the page together
MAX_COMMANDS = 30_000


def add_findings(pack: Pack, contents: Contents) -> None:
    """Add `findings`: null for too many commands, none where a damaged trace has no order."""
    if len(contents.commands.rows) > MAX_COMMANDS:
        pack.meta["findings"] = None
        return
    try:
        found = findings(contents.build)
    except EtraceError:
        found = []
    pack.meta["findings"] = [_record(contents, each) for each in found]


def _record(contents: Contents, it: Finding) -> dict[str, Any]:
    return {
        "id": it.id,
        "title": _text(it.title),
        "gain": "" if it.gain is None else str(it.gain),
        "what": _text(it.what),
        "how": it.how,
        "sure": f"{it.sure}: {it.why_sure}",
        "evidence": [_evidence(contents, each) for each in it.evidence],
        "more": it.n_evidence - len(it.evidence),
    }


def _evidence(contents: Contents, it: Evidence) -> dict[str, Any]:
    return {
        "text": _text(it.text),
        "ns": -1 if it.time_ns is None else it.time_ns,
        "command": contents.commands.of(it.execution),
        "file": contents.number.get(it.path, -1),
    }


def _text(text: str) -> str:
    return shown(os.fsencode(text))
