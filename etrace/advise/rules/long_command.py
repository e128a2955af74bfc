# SPDX-License-Identifier: Apache-2.0
"""One command that the end waits for while processors have nothing to do."""

from __future__ import annotations

from collections.abc import Iterator

from etrace.advise.build import Build
from etrace.advise.finding import Finding, Sure
from etrace.figures import seconds

IDS = ("long-command",)
#: of the elapsed time that it takes, and of its time that it ran alone
LEAST, ALONE = 0.2, 0.5
#: family of compilers -> options that cost time
COSTLY = {
    **dict.fromkeys(("gcc", "cc1", "clang", "icc"), "-O, -flto, -g"),
    "rustc": "-C opt-level, -C lto, -C debuginfo",
}


def find(build: Build) -> Iterator[Finding]:
    """Let the longest command of the critical path take half of its time."""
    simulation = build.simulation
    processes = simulation.network.processes
    on_path: dict[int, int] = {}
    for step in build.critical_path.steps:
        on_path[step.execution] = on_path.get(step.execution, 0) + step.work_ns
    if not on_path or build.n_processors < 2:
        return
    row = max(on_path, key=lambda each: (on_path[each], -each))
    own = processes[processes.of_row[row]]
    if own.children or build.is_probe(row) or on_path[row] < LEAST * simulation.traced_ns:
        return
    alone = _alone_ns(build, row)
    if alone < ALONE * on_path[row]:
        return
    gain = build.gain({row: 0.5})
    if gain is None:
        return
    yield Finding(
        IDS[0],
        f"the end waits for {build.labels.of(row)}: {seconds(on_path[row])}",
        f"For {seconds(alone)} of this time other commands only waited for what they had started.",
        "Split what it works on in two, start it earlier (put what it makes first among the"
        f" prerequisites), {_options(build, row)}or let it use several threads.",
        Sure.POSSIBLE,
        "the gain is that of two halves that run at once",
        gain,
        build.commands({row: on_path[row]}),
        1,
    )


def _options(build: Build, row: int) -> str:
    """Return advice about options to a compiler that has such, else nothing."""
    selected = build.compiler(row)
    costly = None if selected is None else COSTLY.get(selected[0].family)
    return f"give it fewer options that cost time ({costly}), " if costly else ""


def _alone_ns(build: Build, row: int) -> int:
    """Return how long no other process without children ran while an execution did."""
    processes = build.simulation.network.processes
    begin, end = processes.row_start(row), processes.row_end(row)
    own = processes.of_row[row]
    spans = sorted(
        (max(each.start_ns, begin), min(each.end_ns, end))
        for number, each in enumerate(processes)
        if number != own and not each.children and each.start_ns < end and each.end_ns > begin
    )
    alone, free_from = 0, begin
    for start, stop in spans:
        alone += max(start - free_from, 0)
        free_from = max(free_from, stop)
    return alone + max(end - free_from, 0)
