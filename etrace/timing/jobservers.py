# SPDX-License-Identifier: Apache-2.0
"""Makes, ninjas and their like -> which of them share job slots, and how many each has.

A make without -j in its command line takes slots from the make above it. One that names a number
there "resets jobserver mode" and has slots of its own, and so have ninja, samu and scons. A child
of any of them holds a slot while it runs. A make below it that shares the slots needs no other one
for the first of its own children.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from libetrace.image.file import Image

from etrace.spec.database import NONE
from etrace.timing.processes import Processes, most_at_once

MAKES = frozenset(b"make gmake".split())
#: -j without a number
UNLIMITED = sys.maxsize
#: letters before j in one word with it: options that take no value
FLAGS = re.compile(rb"-[^-\WCEIOWflj]*j(\d*)|--jobs(?:=(\d*))?")
NINJA_FLAGS = re.compile(rb"-[hnv]*j(\d*)")
#: options whose value is the next word
VALUES = frozenset(b"-C -f -I -o -W -E --directory --file --makefile --eval".split())
NINJA_VALUES = frozenset(b"-C -f -k -l -d -t -w".split())


@dataclass(slots=True)
class Slots:
    """Job slots that some schedulers share.

    `named` is the number in the command line, None without one, `seen` how many were taken at once
    in the trace, `above` the number of the slots of which one is held by these schedulers.
    """

    named: int | None
    above: int
    seen: int = 1

    @property
    def in_trace(self) -> int:
        """How many they were in the traced build."""
        return self.seen if self.named is None else self.named


class Jobservers:
    """All slots of a build; `of_job` has for each process that holds one which they are.

    Those that pass theirs on to a make are not in it. `of_scheduler` has the slots of each
    scheduler, by the number of its process.
    """

    def __init__(self, image: Image, processes: Processes) -> None:
        self.all: list[Slots] = []
        self.of_job: dict[int, int] = {}
        self._image, self._processes = image, processes
        self.of_scheduler: dict[int, int] = {}
        passes_on = set[int]()
        for number in sorted(range(len(processes)), key=lambda n: processes[n].depth):
            if processes[number].is_scheduler:
                passes_on |= self._scheduler(number)
        for scheduler, slots in self.of_scheduler.items():
            for child in processes[scheduler].children:
                if child not in passes_on:
                    self.of_job[child] = slots
        self._count()

    def is_make(self, scheduler: int) -> bool:
        """Whether a scheduler is a make, and not ninja, samu or scons."""
        return self._command(scheduler)[0]

    def sizes(self, n_jobs: int | None = None) -> list[int]:
        """Return how many slots there are, those of the trace or as with -j `n_jobs`.

        Slots that the trace has with -j1 below others that have more stay one: recipes ask for it.
        """
        if n_jobs is None:
            return [each.in_trace for each in self.all]
        return [1 if self._is_serial(each) else n_jobs for each in self.all]

    def _is_serial(self, slots: Slots) -> bool:
        return slots.named == 1 and slots.above != NONE and self.all[slots.above].in_trace > 1

    def _scheduler(self, number: int) -> set[int]:
        """Give a scheduler its slots; return the job that passes one on to it, when it does."""
        job, above = number, self._processes[number].parent
        while above != NONE and not self._processes[above].is_scheduler:
            job, above = above, self._processes[above].parent
        is_make, named = self._command(number)
        above_slots = self.of_scheduler.get(above, NONE)
        if is_make and named is None and above != NONE and self._command(above)[0]:
            self.of_scheduler[number] = above_slots
            return {job}
        self.of_scheduler[number] = len(self.all)
        self.all.append(Slots(named, above_slots))
        return set()

    def _command(self, number: int) -> tuple[bool, int | None]:
        """Return whether a scheduler is make, and the number of jobs in its command line."""
        image, row = self._image, self._processes[number].end - 1
        executions = image["executions"]
        program = image.path_string(executions["binary"][row]).rpartition(b"/")[2]
        strings = image["arguments"]["string"]
        start = executions["argv.start"]
        argv = [image.string(string) for string in strings[start[row] : start[row + 1]]]
        is_make = program in MAKES
        return is_make, named_jobs(argv, is_ninja=program in {b"ninja", b"samu"})

    def _count(self) -> None:
        jobs: list[list[int]] = [[] for _ in self.all]
        for job, slots in self.of_job.items():
            jobs[slots].append(job)
        for each, own in zip(self.all, jobs, strict=True):
            each.seen = max(most_at_once(self._processes.spans(own)), 1)


def named_jobs(argv: Sequence[bytes], *, is_ninja: bool = False) -> int | None:
    """Return the number of jobs that a command line of make or ninja names, None without one."""
    flags, values = (NINJA_FLAGS, NINJA_VALUES) if is_ninja else (FLAGS, VALUES)
    found, words = None, list(argv[1:])[::-1]
    while words and (word := words.pop()) != b"--":
        if word in values and words:
            words.pop()
        elif match := flags.fullmatch(word):
            number = next(filter(None, match.groups()), b"")
            if not number and words and words[-1].isdigit():
                number = words.pop()
            found = min(int(number[:18]), UNLIMITED) if number else UNLIMITED
    return found or None
