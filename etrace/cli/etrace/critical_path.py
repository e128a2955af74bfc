# SPDX-License-Identifier: Apache-2.0
"""`etrace critical-path`: what the end of a build waited for, and what could shorten it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from typing import Any

from libetrace.depend.execution_facts import find_parents
from libetrace.image.file import Image

from etrace.cli.ending import printable
from etrace.cli.opening import open_view
from etrace.cli.options.common import add_examples, add_format, add_place, positive
from etrace.cli.show.output import put
from etrace.errors import UsageError
from etrace.figures import count, seconds
from etrace.nfsdb.owned import is_captured
from etrace.query.phases import Phases
from etrace.query.rows.commands import Commands
from etrace.query.rows.labels import Labels
from etrace.spec.database import NONE
from etrace.timing.critical_path import (
    Blocked,
    CriticalPath,
    Inside,
    Step,
    doubts,
    find_critical_path,
)
from etrace.timing.network import Reason
from etrace.timing.path_groups import Group, group_path
from etrace.timing.recipe_order import find_recipe_order
from etrace.timing.what_if import Prediction, Simulation, factors_by_row

#: steps and groups shorter than this part of the path are counted and not listed
SHORT = 0.005
N_OTHERS = 10
#: times what its commands explain: other programs took the processors meanwhile
BUSY = 1.3
#: a longer prediction that is not another one
MORE = 1.005
WIDTH, PROGRAM_WIDTH = 36, 18


def _factor(text: str) -> tuple[str, float]:
    """Read `cc1=0.5`."""
    name, equals, number = text.rpartition("=")
    try:
        factor = float(number)
    except ValueError:
        factor = -1.0
    if not name or not equals or not 0 <= factor < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not PROGRAM=FACTOR, for example cc1=0.5")
    return name, factor


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace critical-path`."""
    add_place(parser)
    parser.add_argument(
        "--all-steps",
        dest="all",
        action="store_true",
        help="also list what is below 0.5 %% of the path",
    )
    add_format(parser, "text", "json")
    parser.add_argument(
        "--what-if", type=_factor, action="append", default=[], metavar="PROGRAM=FACTOR",
        help="how long the build would take if executions of PROGRAM (a name, no path) took FACTOR "
        "of their time, for example cc1=0.5; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--what-if-jobs", dest="jobs", type=positive, metavar="N",
        help="how long it would take with N jobs, as make -jN",
    )  # fmt: skip
    parser.add_argument(
        "--what-if-processors", dest="processors", type=positive, metavar="N",
        help="how many processors these jobs have (default: those of this machine for a build that "
        "you captured on it, else one for each job)",
    )  # fmt: skip
    add_examples(
        parser, "etrace critical-path", "etrace critical-path --what-if cc1=0.5 --what-if-jobs 16"
    )


def run(args: argparse.Namespace) -> int:
    """Run `etrace critical-path`."""
    image = open_view(args)
    if args.processors and not args.jobs:
        raise UsageError("--what-if-processors without --what-if-jobs", "say how many jobs")
    n_processors = args.processors or (machine_processors() if is_captured(image) else None)
    simulation = Simulation(image, find_recipe_order(image), n_processors)
    found = find_critical_path(image, simulation.network)
    prediction = None
    if args.what_if or args.jobs:
        factors = factors_by_row(image, dict(args.what_if))
        prediction = simulation.predict(factors, args.jobs)
    if args.format == "json":
        put(json.dumps(_record(image, found, prediction), indent=1) + "\n")
        return 0
    lines = _lines(image, found, prediction, with_all=args.all)
    for line in lines:
        print(printable(line))
    return 0


def machine_processors() -> int:
    """Return how many processors this machine has for us."""
    return len(os.sched_getaffinity(0))


# ---- text ----


def head_line(found: CriticalPath) -> str:
    """Return the figures of the path."""
    most, least = (f"{bound} " if bound else "" for bound in found.bounds)
    return (
        f"critical path {most}{seconds(found.path_ns)}, elapsed {seconds(found.elapsed_ns)},"
        f" elapsed / critical path {least}{found.speedup_limit:.1f}"
    )


def _lines(
    image: Image, found: CriticalPath, prediction: Prediction | None, *, with_all: bool
) -> Iterator[str]:
    labels, least_ns = Labels(image), 0 if with_all else SHORT * found.path_ns
    yield head_line(found)
    yield from (f"{seconds(ns)} of it {where}" for ns, where in doubts(image, found))
    yield from _unknown(labels, found)
    if prediction is not None:
        yield from ("", *_predicted(prediction))
        return
    if not found.steps:
        return
    yield from _groups(image, labels, found, least_ns)
    yield ""
    yield f"{'start':>9}  {'work':>9}  {'CPU':>9}  {'command':<{WIDTH}}  waited for"
    shown = [step for step in found.steps if step.work_ns >= least_ns]
    for step in shown:
        yield _step(image, labels, step, least_ns)
    rest = sum(s.work_ns for s in found.steps) - sum(s.work_ns for s in shown)
    if len(shown) < len(found.steps):
        n = count(len(found.steps) - len(shown), "shorter step")
        yield f"{'':9}  {_short(rest):>9}  {'':9}  {n} (--all-steps lists all)"
    yield from _others(image, labels, found)


def _unknown(labels: Labels, found: CriticalPath) -> Iterator[str]:
    """Yield why the path is a lower bound."""
    if found.unknown:
        row, why = next(iter(found.unknown.items()))
        others = f" and {len(found.unknown) - 1:,} others" if len(found.unknown) > 1 else ""
        text = f"the path is a lower bound: the rules of {labels.of(row)}{others} are not known"
        yield f"{text}: {why}" if why else text
    elif found.is_lower_bound:
        yield (
            "the path is a lower bound: no rule was found for jobs of make that took"
            f" {seconds(found.stray_ns)}"
        )


def _groups(image: Image, labels: Labels, found: CriticalPath, least_ns: float) -> Iterator[str]:
    """Yield the path by phase and program."""
    groups = group_path(found, Phases(Commands(image), labels), labels)
    yield ""
    yield f"{'of it':>9}  {'share':>6}  {'steps':>6}  {'program':<{PROGRAM_WIDTH}}  in"
    shown = [group for group in groups if group.path_ns >= least_ns]
    for group in shown:
        phase = "" if group.phase == NONE else labels.of(group.phase)
        yield _group(group.path_ns, group.n_steps, group.program, phase, found.path_ns)
    if rest := groups[len(shown) :]:
        path_ns, n_steps = sum(g.path_ns for g in rest), sum(g.n_steps for g in rest)
        yield _group(path_ns, n_steps, "others", "", found.path_ns)


def _group(path_ns: int, n_steps: int, program: str, phase: str, whole_ns: int) -> str:
    part = path_ns / whole_ns if whole_ns else 0.0
    line = f"{seconds(path_ns):>9}  {part:>6.1%}  {n_steps:>6,}  {program:<{PROGRAM_WIDTH}}"
    return f"{line}  {phase}".rstrip()


def _short(time_ns: int | None) -> str:
    return "-" if time_ns is None else seconds(time_ns)


def _step(image: Image, labels: Labels, step: Step, least_ns: float) -> str:
    times = f"{_short(step.start_ns):>9}  {_short(step.work_ns):>9}  {_short(step.cpu_ns):>9}"
    notes = [_why(image, step)] if step.reason else []
    notes += [
        f"blocked by {each.by} {seconds(each.time_ns)}"
        for each in step.blocked
        if each.time_ns >= least_ns
    ]
    return f"{times}  {labels.of(step.execution):<{WIDTH}}  {'; '.join(notes)}".rstrip()


def _why(image: Image, step: Step) -> str:
    if step.reason is Reason.FILE:
        return os.fsdecode(image.path_string(step.path).rpartition(b"/")[2])
    names = {Reason.FORK: "its parent", Reason.CHILD: "its child", Reason.PIPE: "its pipe",
             Reason.LINE: "the line before it", Reason.RULE: "a prerequisite",
             Reason.FUNCTION: "$(shell) or an earlier make"}  # fmt: skip
    return names.get(step.reason or Reason.SAME, "its exec")


def _others(image: Image, labels: Labels, found: CriticalPath) -> Iterator[str]:
    """Yield the longest commands that start none and are not on the path, the least slack first."""
    executions, on_path, is_parent = image["executions"], set(found.executions), find_parents(image)
    work, binary = found.work_ns, executions["binary"]
    rows = [
        row for row in range(executions.n_rows)
        if binary[row] != NONE and row not in on_path and not is_parent[row]
    ]  # fmt: skip
    if not rows:
        return
    rows.sort(key=lambda row: -work[row])
    yield ""
    yield f"{'slack':>9}  {'work':>9}  longest commands that are not on the path"
    for row in sorted(rows[:N_OTHERS], key=found.slack_ns.__getitem__):
        yield f"{seconds(found.slack_ns[row]):>9}  {seconds(work[row]):>9}  {labels.of(row)}"


def _predicted(it: Prediction) -> Iterator[str]:
    yield f"{'traced':<24}{seconds(it.traced_ns):>11}  {count(it.traced_jobs, 'job')} at once"
    same = seconds(it.simulated_ns)
    yield f"{'the same, simulated':<24}{same:>11}  {_processors(it.traced_processors)}"
    asked = f", {count(it.n_jobs, 'job')}, {_processors(it.n_processors)}" if it.n_jobs else ""
    than = " of the simulated one" if it.traced_ns > BUSY * it.simulated_ns else ""
    change = f"{it.change - 1:+.0%}{than}{asked}"
    yield f"{'predicted':<24}{seconds(it.predicted_ns):>11}{_most(it)}  {change}"
    if than:
        yield "the build took much longer than its commands explain: trace it on a quiet machine"
    if (free := it.predicted_free_ns) is not None:
        is_shorter = free < 0.99 * it.predicted_ns
        better = "shorter" if is_shorter else "no shorter"
        yield f"{'by dependencies alone':<24}{seconds(free):>11}  {better} than make's order"
    if it.n_unknown:
        n = f"{it.n_unknown:,} of {count(it.n_executions, 'execution')}"
        yield f"the CPU time of {n} is unknown: their elapsed time counts"


def _most(it: Prediction) -> str:
    """Return how long it takes at most, where rules are not known."""
    most = it.predicted_most_ns
    return "" if most is None or most <= MORE * it.predicted_ns else f" to {seconds(most)}"


def _processors(n: int | None) -> str:
    return "without waits for a processor" if n is None else f"on {count(n, 'processor')}"


# ---- JSON ----


def _record(image: Image, found: CriticalPath, prediction: Prediction | None) -> dict[str, Any]:
    labels = Labels(image)
    record: dict[str, Any] = {
        "critical_path_ns": str(found.path_ns),
        "elapsed_ns": str(found.elapsed_ns),
        "speedup_limit": found.speedup_limit,
        "is_upper_bound": found.is_upper_bound,
        "is_lower_bound": found.is_lower_bound,
        "unknown": [
            {**_execution(image, row), "name": labels.of(row), "why": why}
            for row, why in found.unknown.items()
        ],
        "inside": [_inside_record(image, labels, each) for each in found.inside],
        "steps": [_step_record(image, labels, step) for step in found.steps],
        "groups": [
            _group_record(image, labels, group)
            for group in group_path(found, Phases(Commands(image), labels), labels)
        ],
        "slack": [
            {**_execution(image, row), "slack_ns": str(slack)}
            for row, slack in enumerate(found.slack_ns)
        ],
    }
    if prediction is not None:
        record["prediction"] = {
            name: str(value) if name.endswith("_ns") and value is not None else value
            for name in (*Prediction.__slots__, "predicted_ns", "predicted_most_ns")
            for value in (getattr(prediction, name),)
        }
    return record


def _inside_record(image: Image, labels: Labels, inside: Inside) -> dict[str, Any]:
    return {
        **_execution(image, inside.execution),
        "name": labels.of(inside.execution),
        "order": inside.order.value,
        "n": inside.n,
        "path_ns": str(inside.path_ns),
    }


def _group_record(image: Image, labels: Labels, group: Group) -> dict[str, Any]:
    has_phase = group.phase != NONE
    return {
        "phase": labels.of(group.phase) if has_phase else None,
        "phase_began": _execution(image, group.phase) if has_phase else None,
        "program": group.program,
        "n_steps": group.n_steps,
        "path_ns": str(group.path_ns),
    }


def _execution(image: Image, row: int) -> dict[str, Any]:
    executions = image["executions"]
    return {"pid": executions["upid"][row], "idx": executions["index"][row]}


def _step_record(image: Image, labels: Labels, step: Step) -> dict[str, Any]:
    path = None if step.path == NONE else os.fsdecode(image.path_string(step.path))
    return {
        **_execution(image, step.execution),
        "name": labels.of(step.execution),
        "start_ns": str(step.start_ns),
        "end_ns": str(step.end_ns),
        "work_ns": str(step.work_ns),
        "elapsed_ns": str(step.elapsed_ns),
        "cpu_ns": None if step.cpu_ns is None else str(step.cpu_ns),
        "after": step.reason and step.reason.name.lower(),
        "file": path,
        "blocked": [_blocked(each) for each in step.blocked],
    }


def _blocked(one: Blocked) -> dict[str, str]:
    return {"by": one.by, "time_ns": str(one.time_ns)}
