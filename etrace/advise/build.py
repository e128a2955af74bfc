# SPDX-License-Identifier: Apache-2.0
"""An image -> what several rules ask of it, each found once; and the gain of a change.

A gain is what the simulation of `etrace critical-path --what-if` takes off the traced build. What
computes gains more on a slow machine; what slept gains the time slept. No gain is more than the
commands took. Its error is how far the simulation is from the traced build, as a part of the gain,
but at least MODEL_ERROR, and what a rule adds. A gain below the noise does not count.

A probe is what a run of configure, cmake or meson started. It tries what the machine can and makes
nothing of the build: only the rule of configure runs proposes a change of it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from libetrace.image.file import Image

from etrace.advise.finding import Evidence, Gain
from etrace.compilers.invocation import select_tool
from etrace.compilers.tools import Running, Tool, Tools, load
from etrace.query.compilations import Compilers, sources
from etrace.query.includes import Includes, includes
from etrace.query.phases import Phases
from etrace.query.rows.classes import Classes
from etrace.query.rows.commands import Commands, last_of_process, nearest_commands
from etrace.query.rows.file_kinds import FileKinds
from etrace.query.rows.labels import Labels
from etrace.query.rows.temporary import Temporaries
from etrace.rules.targets import PROBES
from etrace.spec.database import ACCESS, NONE, file_type
from etrace.timing.critical_path import CriticalPath, find_critical_path
from etrace.timing.dependencies import began_ns
from etrace.timing.recipe_order import find_recipe_order
from etrace.timing.what_if import Simulation

#: a gain below this part of the elapsed time is noise: so much do repeated builds differ on a
#: quiet machine (docs/advice.md)
NOISE = 0.02
NOISE_NS = 20_000_000
#: predictions of gains differed by as much from what was measured (bench/what_if.py)
MODEL_ERROR = 0.1
MAX_EVIDENCE = 10
#: upper bounds below this part of the elapsed time are not worth a line
MIN_BOUND = 0.05


@dataclass(frozen=True, slots=True)
class Compilation:
    """A compilation of files that last: its driver, that one and all it started, its begin."""

    execution: int
    executions: tuple[int, ...]
    sources: tuple[bytes, ...]
    language: str
    start_ns: int


class Build:
    """One build. EtraceError for a damaged database."""

    def __init__(
        self, image: Image, kinds: FileKinds | None = None, commands: Commands | None = None,
        labels: Labels | None = None,
    ) -> None:  # fmt: skip
        """Take what somebody knows of the image already."""
        self.image, self._kinds, self._commands = image, kinds, commands
        self.executions = image["executions"]
        self.labels, self.classes = labels or Labels(image), Classes(image)
        self._names: dict[int, bytes] = {NONE: b""}

    @cached_property
    def simulation(self) -> Simulation:
        """The build as it can run again."""
        return Simulation(self.image, find_recipe_order(self.image))

    @cached_property
    def n_processors(self) -> int:
        """How many processors the trace shows: a machine with more may have left some idle."""
        return len(set(self.image["cpus"]["cpu"]))

    @cached_property
    def critical_path(self) -> CriticalPath:
        """What the end of the build waited for."""
        return find_critical_path(self.image, self.simulation.network)

    @cached_property
    def includes(self) -> Includes | None:
        """What headers cost, None before `cas pp`."""
        return includes(self.image, kinds=self._kinds) if self.classes.are_known else None

    @cached_property
    def phases(self) -> Phases:
        """Runs of configure, make and their like."""
        return Phases(self._commands or Commands(self.image), self.labels)

    def is_probe(self, row: int) -> bool:
        """Return whether an execution belongs to a run of configure, cmake or meson."""
        return self.phases.is_configure(self.phases.commands.of(row)) or bool(
            PROBES.fullmatch(self.cwd(row))
        )

    @cached_property
    def tools(self) -> Tools:
        """Compilers, linkers, archivers and launchers."""
        return load()

    @cached_property
    def above(self) -> list[int]:
        """The execution before each in its process, else the one that forked it; NONE for none."""
        upid, parent = self.executions["upid"].tolist(), self.executions["parent"].tolist()
        return [
            row - 1 if row and upid[row - 1] == each else parent[row]
            for row, each in enumerate(upid)
        ]

    @cached_property
    def last_of_process(self) -> list[int]:
        """The last execution of the upid of each."""
        return last_of_process(self.executions)

    @cached_property
    def by_time(self) -> list[int]:
        """Executions, what starts others before them."""
        start = self.executions["start_ns"].tolist()
        return sorted(range(len(start)), key=lambda row: (start[row], row))

    @cached_property
    def compilations(self) -> list[Compilation]:
        """Compilations in order of time, without probes and temporary sources; or empty."""
        if not self.classes.are_known:
            return []
        compilers, own = Compilers(self.image), dict[int, list[int]]()
        for row in range(self.executions.n_rows):
            own.setdefault(compilers.of(row), []).append(row)
        temporary, found = Temporaries(self.image), []
        languages = self.image["compilations"]["language"]
        for number, row in enumerate(self.image["compilations"]["execution"]):
            paths = sources(self.image, number)
            rows = (self.image.find_path(path) for path in paths)
            if self.is_probe(row):
                continue
            if paths and not any(each >= 0 and temporary.is_temporary(each) for each in rows):
                begin = self.executions["start_ns"][row]
                language = os.fsdecode(self.image.string(languages[number]))
                found.append(Compilation(row, tuple(own[number]), tuple(paths), language, begin))
        return sorted(found, key=lambda each: each.start_ns)

    @cached_property
    def began_ns(self) -> int:
        """The time stamp of opens (CLOCK_MONOTONIC) at which executions count from 0."""
        return began_ns(self.image)

    @cached_property
    def writes(self) -> dict[int, list[tuple[int, int]]]:
        """Path -> (time stamp, execution) of each open that writes it, in order of time."""
        opens, found = self.image["opens"], dict[int, list[tuple[int, int]]]()
        columns = (opens[name] for name in ("path", "mode", "open_ns", "execution"))
        for path, mode, time_ns, row in zip(*columns, strict=True):
            if mode & ACCESS and not stat.S_ISDIR(file_type(mode)):
                found.setdefault(path, []).append((time_ns, row))
        for uses in found.values():
            uses.sort()
        return found

    def program(self, row: int) -> bytes:
        """Return the name of the program of an execution, empty before its first exec."""
        binary = self.executions["binary"][row]
        if binary not in self._names:
            self._names[binary] = self.image.path_string(binary).rpartition(b"/")[2]
        return self._names[binary]

    @cached_property
    def _nearest(self) -> list[int]:
        return nearest_commands(self.executions)

    def tool(self, row: int) -> Tool | None:
        """Return which tool (compiler, linker, ..) an execution ran, None for other programs."""
        binary = self.executions["binary"][row]
        if binary == NONE:
            return None
        return self._running(row).tool

    def _running(self, row: int) -> Running:
        path = self.image.path_string(self.executions["binary"][row])
        return self.tools.running(path, self.labels.arguments(row))

    def tool_kind(self, row: int) -> str:
        """Return the kind of that tool, empty for other programs."""
        tool = self.tool(row)
        return tool.kind if tool else ""

    def compiler(self, row: int) -> tuple[Tool, Sequence[bytes]] | None:
        """Return the compiler that a command line is for, and its arguments without a name."""
        if self.executions["binary"][row] == NONE:
            return None
        tool, _, argv = self._running(row)
        return select_tool(self.tools, tool, argv) if tool else None

    def started_by(self, row: int) -> str:
        """Return the label of the command that started an execution, empty for none."""
        parent = self.executions["parent"][row]
        above = NONE if parent == NONE else self._nearest[parent]
        return "" if above == NONE else self.labels.of(above)

    def nearest(self, rows: Set[int]) -> dict[int, int]:
        """Return rows and all that they did later or started -> the nearest of `rows`."""
        found: dict[int, int] = {}
        for row in self.by_time:
            above = self.above[row]
            if row in rows:
                found[row] = row
            elif above in found:
                found[row] = found[above]
        return found

    def own_ns(self, rows: Iterable[int]) -> int:
        """Return what executions took themselves, without waits."""
        own = self.simulation.own_ns
        return round(sum(own[row] for row in rows))

    def cwd(self, row: int) -> bytes:
        """Return the working directory of an execution."""
        return self.image.string(self.executions["cwd"][row])

    def shown(self, path: bytes) -> str:
        """Return a path, relative to where the build began when it is below that."""
        root = os.fsencode(self.image.attributes.get("source_root", "")).rstrip(b"/") + b"/"
        return os.fsdecode(path.removeprefix(root) if len(root) > 1 else path)

    # ---- gains ----

    @property
    def noise_ns(self) -> int:
        """What is too little to be a gain."""
        return max(round(NOISE * self.simulation.traced_ns), NOISE_NS)

    def gain(
        self,
        factors: Mapping[int, float],
        n_jobs: int | None = None,
        *,
        error: float = 0.0,
        is_bound: bool = False,
        when: str = "",
    ) -> Gain | None:
        """Return what a build gains when times of executions are multiplied; None below the noise.

        `error` is the rule's own part of the gain in doubt.
        """
        simulation, slept_ns, most_ns = self.simulation, 0.0, None
        if n_jobs is None:
            spared = {row: simulation.own_ns[row] * (1 - each) for row, each in factors.items()}
            slept_ns = sum(spared[row] for row in spared if row in simulation.slept_rows)
            if sum(spared.values()) < self.noise_ns:  # no order of jobs makes more of it
                return None
            most_ns = sum(
                simulation.elapsed_own_ns[row] * (1 - each) for row, each in factors.items()
            )
            slept_ns /= sum(spared.values())
        before, after = simulation.simulated_ns, simulation.ordered_ns(factors, n_jobs)
        return self.gain_of(
            before, after, error=error, is_bound=is_bound, when=when, most_ns=most_ns,
            slept=slept_ns,
        )  # fmt: skip

    def gain_of(
        self,
        before_ns: int,
        after_ns: int,
        *,
        error: float = 0.0,
        is_bound: bool = False,
        when: str = "",
        most_ns: float | None = None,
        slept: float = 0.0,
    ) -> Gain | None:
        """Return the gain between two runs of the simulation; None below the noise.

        `slept` is the part of it that used no processor, so that the machine's load is nothing to
        it; `most_ns` is what all of it took.
        """
        traced, simulated = self.simulation.traced_ns, self.simulation.simulated_ns
        if not simulated:
            return None
        scale = slept + (1 - slept) * self.simulation.explained_ns / simulated
        time_ns = min((before_ns - after_ns) * scale, traced if most_ns is None else most_ns)
        if time_ns < max(self.noise_ns, MIN_BOUND * traced if is_bound else 0):
            return None
        part = max(abs(traced - simulated) / traced, MODEL_ERROR) + error
        gain_ns = round(time_ns)
        return Gain(gain_ns, min(round(time_ns * part), gain_ns), traced, is_bound, when)

    # ---- evidence ----

    def commands(self, times: Mapping[int, int]) -> tuple[Evidence, ...]:
        """Return evidence of executions by their times, the MAX_EVIDENCE longest first."""
        rows = sorted(times, key=lambda row: (-times[row], row))[:MAX_EVIDENCE]
        return tuple(Evidence(self.labels.of(row), times[row], row) for row in rows)


def none_of(rows: Iterable[int]) -> dict[int, float]:
    """Return factors that take all time from executions."""
    return dict.fromkeys(rows, 0.0)
