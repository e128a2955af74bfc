# SPDX-License-Identifier: Apache-2.0
"""Faults -> SARIF 2.1.0, by OASIS's standard (sections 3.13, 3.27 and 3.35)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from etrace.check.kinds import KINDS, Fault, Severity

FINGERPRINT = "fault/v1"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def log(
    faults: Iterable[Fault],
    accepted: Iterable[Fault],
    version: str,
    old: Iterable[Fault] | None = None,
) -> dict[str, Any]:
    """Return a log with one run; accepted faults are suppressed results.

    `old` are faults of a baseline; None without one.
    """
    rules = [{"id": name, "shortDescription": {"text": kind.why}} for name, kind in KINDS.items()]
    results = [_result(each) for each in faults]
    if old is not None:
        results = [{**each, "baselineState": "new"} for each in results]
        results += [{**_result(each), "baselineState": "unchanged"} for each in old]
    results += [{**_result(each), "suppressions": [{"kind": "external"}]} for each in accepted]
    driver = {"name": "etrace check", "version": version, "rules": rules}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(fault: Fault) -> dict[str, Any]:
    text = f"{fault.file}, {', '.join(fault.targets)}: {KINDS[fault.id].why}. Do: {fault.remedy}"
    makefile = fault.makefile or str(Path(fault.directory) / "Makefile")
    return {
        "ruleId": fault.id,
        "level": "warning" if KINDS[fault.id].severity == Severity.WARNING else "note",
        "message": {"text": text},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": Path(makefile).as_uri()}}}],
        "partialFingerprints": {FINGERPRINT: fault.key},
    }
