# SPDX-License-Identifier: Apache-2.0
"""`etrace check`: what the makefiles or the build.ninja of a build lack."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etrace import __version__
from etrace.check import accepted, baseline, sarif
from etrace.check.find import Result, check
from etrace.check.kinds import KINDS, NEVER_READ, Fault, Severity
from etrace.cli.ending import printable, say
from etrace.cli.opening import open_view
from etrace.cli.options.common import add_examples, add_format, add_place
from etrace.cli.show.output import put
from etrace.figures import count
from etrace.query.failures import find_failures
from etrace.query.rows.commands import Commands
from etrace.query.rows.labels import Labels
from etrace.query.rows.records import Records
from etrace.redaction.build import Redaction
from etrace.spec.database import NONE

N_TARGETS = 6
EPILOG = """\
exit status: 0 no fault; 1 faults; 2 wrong usage, damaged input or failure, or less than half of
the commands that wrote files of the project could be judged.
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace check`."""
    parser.epilog = EPILOG
    add_place(parser)
    add_format(parser, "text", "json", "sarif")
    parser.add_argument(
        "--accepted", metavar="FILE", type=Path,
        help="leave out the faults of this file, a line each: ID FILE TARGET # reason",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="FILE", type=Path,
        help="leave out the faults of an earlier output, JSON or SARIF",
    )  # fmt: skip
    parser.add_argument(
        "--all", action="store_true",
        help="show notes too, which do not change the exit status: never-read, network, home, "
        "time-or-random",
    )  # fmt: skip
    parser.add_argument(
        "--run-shell", action="store_true",
        help="let $(shell) of makefiles run while make is asked; it can change no file",
    )  # fmt: skip
    parser.add_argument(
        "--trust", action="store_true",
        help="run make for a build that you did not capture on this machine: in a sandbox, it "
        "reads the makefiles that the trace names, as you",
    )  # fmt: skip
    add_examples(parser, "etrace check", "etrace check --accepted faults.txt --format sarif")


def run(args: argparse.Namespace) -> int:
    """Run `etrace check`: 0 without a fault, 1 with one, 2 when most could not be judged."""
    image = open_view(args)
    lines = [] if args.accepted is None else accepted.read(args.accepted)
    before = None if args.baseline is None else baseline.read(args.baseline)
    result = check(image, runs_shell=args.run_shell, is_trusted=args.trust, has_notes=args.all)
    new, known, unused = accepted.split(result.faults, lines)
    new, old, n_gone = baseline.split(new, known, before or Counter())
    it = Sorted(new, known, None if before is None else old, n_gone)
    if args.format == "sarif":
        root = Path(str(image.attributes.get("source_root", "") or "/"))
        log = Redaction(image).within(sarif.log(new, known, __version__, root, it.old))
        put(json.dumps(log, indent=1) + "\n")
    elif args.format == "json":
        put(json.dumps(_record(Records(image), result, it), indent=1) + "\n")
    else:
        labels = Labels(image)
        for line in _lines(labels, result, it):
            print(printable(line))
    for each in unused:
        say(f"etrace: {args.accepted}: no such fault any more: {each.id} {each.file}\n")
    failures = find_failures(Commands(image))
    if failures.commands or failures.interrupted_by:
        say("etrace: this build failed: what it did not get to was not checked\n")
    if (warning := _not_judged(result)) and args.format != "text":
        say(f"etrace: {printable(warning)}\n")
    if warning:
        return 2
    return int(any(KINDS[each.id].severity != Severity.NOTE for each in new))


@dataclass(frozen=True, slots=True)
class Sorted:
    """Faults that are new, accepted and of the baseline (None without one)."""

    new: Sequence[Fault]
    accepted: Sequence[Fault]
    old: Sequence[Fault] | None
    n_gone: int


def _not_judged(result: Result) -> str:
    """Return why a result says little, and what to do; empty when it says enough."""
    if 2 * result.n_judged >= result.n_writers and (result.n_known or not result.n_recipes):
        return ""
    why = result.why_not or "no rule is known that runs the others: let rules name what they write"
    if not result.n_writers:
        return "not judged: the targets of no command are known"
    return (
        f"not judged: only {result.n_judged:,} of {count(result.n_writers, 'command')} that wrote "
        f"files of the project could be; {why}"
    )


def _lines(labels: Labels, result: Result, it: Sorted) -> Iterator[str]:
    if warning := _not_judged(result):
        yield from (warning, "")
    for each in it.new:
        yield from (*_fault(labels, each), "")
    more = f", {len(it.accepted)} accepted" if it.accepted else ""
    if it.old is not None:
        more += f", {len(it.old)} old ({it.n_gone} of the baseline gone)"
    yield (
        f"{count(len(it.new), 'fault')}{more}; targets are known of {result.n_known:,} of "
        f"{count(result.n_recipes, 'command')} in {_runs(result)}"
    )
    for make, why in result.unknown:
        yield f"not checked: {make}: {why}"


def _runs(result: Result) -> str:
    runs = sorted(result.runs.items())
    return " and ".join(f"{count(number, 'run')} of {tool}" for tool, number in runs)


def _fault(labels: Labels, it: Fault) -> Iterator[str]:
    yield it.key.partition(" ")[0] + f"  {it.file}"
    shown = " ".join(it.targets[:N_TARGETS])
    n_more = len(it.targets) - N_TARGETS
    yield f"  for {shown}{f' and {n_more} more' if n_more > 0 else ''}, in {it.directory}"
    kind = KINDS[it.id]
    if it.writer != NONE:
        yield f"  {kind.first:11} {labels.of(it.writer)}, for {' '.join(it.made_for)}"
    yield f"  {kind.second:11} {labels.of(it.reader)}"
    yield f"  {kind.why}"
    if it.remedy:
        yield f"  {'drop' if it.id == NEVER_READ else 'add':11} {it.remedy}"


def _record(records: Records, result: Result, it: Sorted) -> dict[str, Any]:
    of_baseline = {} if it.old is None else {
        "old": [_fault_record(records, each) for each in it.old],
        "n_gone": it.n_gone,
    }  # fmt: skip
    return {
        "faults": [_fault_record(records, each) for each in it.new],
        "accepted": [_fault_record(records, each) for each in it.accepted],
        **of_baseline,
        "n_makes": sum(result.runs.values()),
        "n_commands": result.n_recipes,
        "n_commands_with_targets": result.n_known,
        "n_writers": result.n_writers,
        "n_writers_judged": result.n_judged,
        "not_checked": [{"make": make, "why": why} for make, why in result.unknown],
    }


def _fault_record(records: Records, it: Fault) -> dict[str, Any]:
    return {
        "id": it.id,
        "key": it.key,
        "file": it.file,
        "directory": it.directory,
        "makefile": it.makefile,
        "targets": list(it.targets),
        "made_for": list(it.made_for),
        "severity": KINDS[it.id].severity,
        "why": KINDS[it.id].why,
        "remedy": it.remedy,
        "reader": _command(records, it.reader),
        "writer": _command(records, it.writer),
    }


def _command(records: Records, row: int) -> dict[str, Any] | None:
    if row == NONE:
        return None
    pid, idx = records.key(row)
    return {"pid": pid, "idx": idx, "cwd": records.directory(row), "command": records.argv(row)}
