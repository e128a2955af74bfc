# SPDX-License-Identifier: Apache-2.0
"""Faults -> SARIF 2.1.0, by OASIS's standard (3.13, 3.14, 3.27, 3.35 and 3.49).

GitHub's code scanning takes less than the standard allows ("SARIF support for code scanning"): each
rule has a full description and help, each location a line, and files are relative to the folder of
the repository, `%SRCROOT%`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from etrace.check.kinds import KINDS, Fault, Severity
from etrace.rules.dependency_files import text_of_file

FINGERPRINT = "fault/v1"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"
#: of a makefile that is searched for the line of a target
MAX_BYTES = 64 << 20
_LEVELS = {Severity.WARNING: "warning"}
_TARGETS = re.compile(r"(?:build )?([^\t#:=|$][^\t:=|]*?)(?: \|[^:=]*)? ?:(?!=)")


def log(
    faults: Iterable[Fault],
    accepted: Iterable[Fault],
    version: str,
    root: Path,
    old: Iterable[Fault] | None = None,
) -> dict[str, Any]:
    """Return a log with one run; accepted faults are suppressed results.

    `root` is where the build began; `old` are faults of a baseline, None without one.
    """
    top = next((each for each in (root, *root.parents) if (each / ".git").exists()), root)
    results = [_result(each, top) for each in faults]
    if old is not None:
        results = [{**each, "baselineState": "new"} for each in results]
        results += [{**_result(each, top), "baselineState": "unchanged"} for each in old]
    results += [{**_result(each, top), "suppressions": [{"kind": "external"}]} for each in accepted]
    driver = {"name": "etrace check", "version": version, "rules": [*map(_rule, KINDS)]}
    base = f"{top.as_uri().rstrip('/')}/"
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "originalUriBaseIds": {ROOT: {"uri": base}},
                "results": results,
            }
        ],
    }


def _level(name: str) -> str:
    return _LEVELS.get(KINDS[name].severity, "note")


def _rule(name: str) -> dict[str, Any]:
    kind = KINDS[name]
    return {
        "id": name,
        "name": name.title().replace("-", ""),
        "shortDescription": {"text": kind.title},
        "fullDescription": {"text": f"{kind.title}: {kind.why}."},
        "help": {"text": f"{kind.why}. {kind.cure}."},
        "defaultConfiguration": {"level": _level(name)},
        "properties": {"tags": ["build"], "precision": "high"},
    }


def _result(fault: Fault, top: Path) -> dict[str, Any]:
    text = f"{fault.file}, {', '.join(fault.targets)}: {KINDS[fault.id].why}."
    if fault.remedy:
        text += f" Do: {fault.remedy}"
    makefile = Path(fault.makefile or Path(fault.directory) / "Makefile")
    location = {
        "artifactLocation": _artifact(makefile, top),
        "region": {"startLine": _lines(makefile).get(fault.targets[0], 1)},
    }
    return {
        "ruleId": fault.id,
        "ruleIndex": [*KINDS].index(fault.id),
        "level": _level(fault.id),
        "message": {"text": text},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {FINGERPRINT: fault.key},
    }


def _artifact(path: Path, top: Path) -> dict[str, str]:
    if not path.is_relative_to(top):
        return {"uri": path.as_uri()}
    relative = str(path.relative_to(top)).encode(errors="surrogateescape")
    return {"uri": quote(relative), "uriBaseId": ROOT}


@cache
def _lines(makefile: Path) -> Mapping[str, int]:
    """Return the first lines that name targets before a colon; none without the file."""
    try:
        text = text_of_file(makefile, MAX_BYTES)
    except OSError:
        return {}
    found = dict[str, int]()
    for number, line in enumerate(text.split("\n"), 1):
        if match := _TARGETS.match(line):
            for name in match[1].split():
                found.setdefault(name, number)
    return found
