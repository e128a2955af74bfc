# SPDX-License-Identifier: Apache-2.0
"""`etrace advise`: what would make a build faster or more robust."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import textwrap
from collections.abc import Iterator
from typing import Any

from libetrace.image.file import Image

from etrace.advise.build import Build
from etrace.advise.finding import Evidence, Finding, Gain
from etrace.advise.rules import findings
from etrace.cli.ending import printable
from etrace.cli.opening import open_view
from etrace.cli.options.common import add_examples, add_format, add_place
from etrace.cli.show.output import put
from etrace.figures import seconds
from etrace.spec.database import NONE

N_EVIDENCE = 4
INDENT = "  "
MIN_WIDTH, MAX_WIDTH = 60, 100


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace advise`."""
    add_place(parser)
    add_format(parser, "text", "json")
    add_examples(parser, "etrace advise", "etrace advise --json ~/project")


def run(args: argparse.Namespace) -> int:
    """Run `etrace advise`: 0 with a finding, 1 without one."""
    image = open_view(args)
    build = Build(image)
    found = findings(build)
    if args.format == "json":
        put(json.dumps(_record(image, build, found), indent=1) + "\n")
    else:
        for line in _lines(build, found):
            print(printable(line))
    return 0 if found else 1


# ---- text ----


def _lines(build: Build, found: list[Finding]) -> Iterator[str]:
    width = min(max(shutil.get_terminal_size((MAX_WIDTH, 24)).columns, MIN_WIDTH), MAX_WIDTH)
    elapsed, noise = seconds(build.simulation.traced_ns), seconds(build.noise_ns)
    if not found:
        yield f"no finding that gains {noise} or more of {elapsed}"
    for number, each in enumerate(found, 1):
        if number > 1:
            yield ""
        yield from _finding(each, width)


def _finding(it: Finding, width: int) -> Iterator[str]:
    yield f"{it.title}  [{it.id}]"
    if it.gain is not None:
        yield f"{INDENT}{it.gain}"
    yield from _wrapped(it.what, width)
    for each in it.evidence[:N_EVIDENCE]:
        yield f"{INDENT}{'' if each.time_ns is None else seconds(each.time_ns):>11}  {each.text}"
    if it.n_evidence > N_EVIDENCE:
        yield f"{INDENT}{'':11}  and {it.n_evidence - N_EVIDENCE:,} more"
    yield from _wrapped(it.how, width)
    yield from _wrapped(f"{it.sure}: {it.why_sure}", width)


def _wrapped(text: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(
        text, width, initial_indent=INDENT, subsequent_indent=INDENT, break_on_hyphens=False
    )


# ---- JSON ----


def _record(image: Image, build: Build, found: list[Finding]) -> dict[str, Any]:
    return {
        "elapsed_ns": str(build.simulation.traced_ns),
        "simulated_ns": str(build.simulation.simulated_ns),
        "noise_ns": str(build.noise_ns),
        "findings": [_finding_record(image, each) for each in found],
    }


def _finding_record(image: Image, it: Finding) -> dict[str, Any]:
    return {
        "id": it.id,
        "title": it.title,
        "what": it.what,
        "how": it.how,
        "sure": it.sure.value,
        "why_sure": it.why_sure,
        "gain": None if it.gain is None else _gain_record(it.gain),
        "n_evidence": it.n_evidence,
        "evidence": [_evidence_record(image, each) for each in it.evidence],
    }


def _gain_record(gain: Gain) -> dict[str, Any]:
    return {
        "time_ns": str(gain.time_ns),
        "error_ns": str(gain.error_ns),
        "share": gain.share,
        "is_bound": gain.is_bound,
        "when": gain.when,
    }


def _evidence_record(image: Image, it: Evidence) -> dict[str, Any]:
    executions = image["executions"]
    return {
        "text": it.text,
        "time_ns": None if it.time_ns is None else str(it.time_ns),
        "pid": None if it.execution == NONE else executions["upid"][it.execution],
        "idx": None if it.execution == NONE else executions["index"][it.execution],
        "file": None if it.path == NONE else os.fsdecode(image.path_string(it.path)),
    }
