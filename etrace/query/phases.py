# SPDX-License-Identifier: Apache-2.0
"""Commands -> phases of a build: runs of configure, cmake, meson, make and ninja; their probes.

A phase is a command and all that it started. A configure script is a phase of its own wherever it
runs, cmake and meson below make as well; below configure all else belongs to configure, which tries
make, too. A script that looks for a better shell and executes itself again is one phase.

A probe of a configure script goes from one `conftest` source to the next. What it compiles, links
and runs names such a file, too; with a cache of results autoconf does none of that.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain, pairwise
from typing import NamedTuple

from libetrace.depend.path_opens import owned_paths

from etrace.compilers.tools import load
from etrace.query.rows.commands import FORK, Commands, statuses
from etrace.query.rows.labels import MAKES, SHELLS, Labels
from etrace.spec.database import NONE

CONFIGURE = b"configure"
#: what a configure script runs by a shell, and people do to configure again
SCRIPTS = frozenset((CONFIGURE, b"config.status", b"config.guess"))
GENERATORS, MAKERS = frozenset((b"cmake", b"meson")), MAKES | {b"bmake", b"scons"}
#: first words of cmake and meson that configure nothing
OTHER_WORK = frozenset(b"--build --install --open -E -P compile dist install test".split())
#: of the makefiles that cmake writes
CHECK = b"--check-build-system"
INTERPRETERS = re.compile(rb"perl|python[\d.]*")
CONFTEST = b"conftest"
#: in the words of `rm` when there was no file: configure removes what is left when it ends
NO_FILES = CONFTEST + b"*"
SOURCE = re.compile(rb"conftest\.(?!(?:o|obj|err|er1|out|exe|dir)$)\w+")
PROGRAM = re.compile(rb"conftest(?:\.exe)?")
COMPILERS = frozenset(("compiler", "launcher"))
READ, WRITE = 0, 1
#: titles of parts of a configure run; a probe has what it did
BEFORE, PROBE, AFTER = "before the first probe", "", "after the last probe"


class Kind(StrEnum):
    """What a phase does."""

    CONFIGURE = "configure"
    MAKE = "make"


@dataclass(frozen=True, slots=True)
class Probe:
    """A part of a configure run, in numbers of commands.

    `is_probe` is false for what comes before the first probe and after the last one. `result` is
    that of `shown`, the last command that compiled or ran the source.
    """

    steps: tuple[int, ...]  #: what the script started
    tried: tuple[int, ...]  #: those of them that used or named a conftest file
    is_probe: bool
    what: str  #: `compile, run`
    shown: int
    result: str
    start_ns: int
    elapsed_ns: int
    n_commands: int


class Part(NamedTuple):
    """Steps of a configure run, before they are described."""

    title: str
    steps: list[int]


class Phases:
    """`of` has the command that began its phase for each command, NONE outside of all phases."""

    def __init__(self, commands: Commands, labels: Labels | None = None) -> None:
        """`labels` are those of the image, when somebody has them already."""
        self.commands, self._labels = commands, labels or Labels(commands.image)
        self._tools, self._table = load(), commands.image["executions"]
        self._binary = self._table["binary"]
        self._programs: dict[int, bytes] = {}
        #: what the phases do, by the commands that began them, in order of time
        self.kinds: dict[int, Kind] = {}
        self.of = array("i", [NONE]) * len(commands.rows)
        for number in range(len(commands.rows)):  # a parent starts before its children
            self.of[number] = self._phase(number)

    def _phase(self, number: int) -> int:
        parent = self.commands.parent(number)
        above = self.of[parent] if parent != NONE else NONE
        name, words = self._work(number)
        kind = _kind(name, words)
        is_own = above == NONE or name == CONFIGURE or (
            kind is Kind.CONFIGURE and self.kinds[above] is not Kind.CONFIGURE
        )  # fmt: skip
        if kind is None or not is_own:
            return above
        if name == CONFIGURE:
            self._join_earlier(number)
        self.kinds[number] = kind
        return number

    def _join_earlier(self, number: int) -> None:
        """Let a run that its process executed before be a part of this one."""
        row, upid = self.commands.rows[number], self._table["upid"]
        earlier = self.commands.of(row - 1) if row and upid[row - 1] == upid[row] else NONE
        if self.kinds.pop(earlier, None) is not None:
            for each in range(earlier, number):
                if self.of[each] == earlier:
                    self.of[each] = number

    def _work(self, number: int) -> tuple[bytes, Sequence[bytes]]:
        """Return the name of a program, or of the script that it runs, and the words after that."""
        name, row = self._program(number), self.commands.rows[number]
        is_script = name in SHELLS or INTERPRETERS.fullmatch(name)
        words = self._labels.arguments(row) if is_script or name in GENERATORS else []
        if not is_script:
            return name, words[1:]
        for at, word in enumerate(words[1:], 1):
            if word[:1] not in b"-+":
                return word.rpartition(b"/")[2], words[at + 1 :]
            if word[-1:] == b"c" and not word.startswith(b"--"):  # no script: sh -ec COMMAND
                break
        return b"", ()

    def _program(self, number: int) -> bytes:
        row = self.commands.rows[number]
        binary = self._binary[row]
        if binary not in self._programs:
            self._programs[binary] = self.commands.program(row)
        return self._programs[binary]

    def is_configure(self, number: int) -> bool:
        """Return whether a command belongs to a run of configure, cmake or meson."""
        return number != NONE and self.kinds.get(self.of[number]) is Kind.CONFIGURE

    # ---- probes ----

    def probes(self, root: int) -> list[Probe]:
        """Return the parts of a configure run in order; none when it wrote no conftest source."""
        steps, parts = self._steps.get(root, {}), [Part(BEFORE, [])]
        for step, below in steps.items():
            if not self._writers.isdisjoint(below):
                parts.append(Part(PROBE, []))
            parts[-1].steps.append(step)
        if len(parts) == 1:
            return []
        last = parts[-1].steps
        end = 1 + max(at for at, step in enumerate(last) if self._tries(steps[step]))
        parts.append(Part(AFTER, last[end:]))
        del last[end:]
        return [self._probe(part, steps) for part in parts if part.steps]

    def below(self, root: int, step: int) -> list[int]:
        """Return a step of a configure run and what it started."""
        return self._steps[root][step]

    def _probe(self, part: Part, below: Mapping[int, Sequence[int]]) -> Probe:
        steps, does, ran = tuple(part.steps), dict[str, None](), list[int]()
        shown, result = steps[0], ""
        for number in chain.from_iterable(self._ran(below[step]) for step in steps):
            ran.append(number)
            if part.title is PROBE and (work := self._work_on_conftest(number)):
                does[work], shown = None, number
                result = _result(self._status[self.commands.rows[number]])
        start_ns = int(self._table["start_ns"][self.commands.rows[steps[0]]])
        end_ns = max(self.commands.end_ns(number) for step in steps for number in below[step])
        return Probe(
            steps=steps,
            tried=tuple(step for step in steps if self._tries(below[step])),
            is_probe=part.title is PROBE,
            what=part.title or ", ".join(does) or "no compiler",
            shown=shown,
            result=result,
            start_ns=start_ns,
            elapsed_ns=end_ns - start_ns,
            n_commands=len(ran),
        )

    def _ran(self, below: Sequence[int]) -> Iterator[int]:
        """Yield what a step ran: itself, or what the shells that it is ran."""
        shells = set[int]()
        for number in below:
            if number != below[0] and self.commands.parent(number) not in shells:
                continue
            if self._program(number) in SHELLS | {FORK} and not self._is_conftest(number):
                shells.add(number)
            else:
                yield number

    def _words(self, number: int) -> list[bytes]:
        return self._labels.arguments(self.commands.rows[number])

    def _is_conftest(self, number: int) -> bool:
        return any(PROGRAM.fullmatch(_name(word)) for word in self._words(number)[:1])

    def _tool(self, number: int) -> str:
        """Return the kind of the compiler, linker, .. that a command ran, empty for others."""
        words, binary = self._words(number), self._binary[self.commands.rows[number]]
        if binary == NONE or not words:
            return ""
        tool = self._tools.running(self.commands.image.path_string(binary), words).tool
        return tool.kind if tool else ""

    def _work_on_conftest(self, number: int) -> str:
        """Return what a command did with a conftest source or program, empty for nothing."""
        if self._is_conftest(number):
            return "run"
        words = self._words(number)
        is_compiler = self._tool(number) in COMPILERS
        if not is_compiler or not any(SOURCE.fullmatch(_name(word)) for word in words):
            return ""
        return "preprocess" if b"-E" in words else "compile" if b"-c" in words else "link"

    @cached_property
    def _status(self) -> list[int]:
        return statuses(self.commands.image)

    @cached_property
    def _steps(self) -> dict[int, dict[int, list[int]]]:
        """What each configure run started, and each of these with all that it started."""
        found, step_of = defaultdict[int, dict[int, list[int]]](dict), dict[int, int]()
        for number, root in enumerate(self.of):
            if number == root or not self.is_configure(number):
                continue
            parent = self.commands.parent(number)
            step = step_of[number] = step_of.get(parent, number)
            found[root].setdefault(step, []).append(number)
        return found

    # ---- files ----

    def _tries(self, below: Sequence[int]) -> bool:
        return not self._naming.isdisjoint(below)

    @cached_property
    def _writers(self) -> set[int]:
        """The commands that wrote a conftest source; compilers write conftest.s."""
        found = self._users(READ, lambda name: SOURCE.fullmatch(name) is not None)
        return {number for number in found if not self._tool(number)}

    @cached_property
    def _naming(self) -> set[int]:
        """The commands of configure runs that used a conftest file or named one."""
        users = (self._users(mode, lambda name: CONFTEST in name) for mode in (READ, WRITE))
        named = (
            number for number in range(len(self.of))
            if self.is_configure(number)
            and any(CONFTEST in word and word != NO_FILES for word in self._words(number))
        )  # fmt: skip
        return set().union(*users, named)

    def _users(self, left_out: int, is_meant: Callable[[bytes], bool]) -> set[int]:
        """Return the commands of configure runs that used files with such names."""
        image, n_commands = self.commands.image, len(self.of)
        owners = array("i", (n if self.is_configure(n) else NONE for n in self.commands.owners))
        found = owned_paths([image["opens"], image["inherited"]], owners, n_commands, left_out)
        meant = {path for path in set(found.path) if is_meant(_name(image.path_string(path)))}
        spans = enumerate(pairwise(found.start))
        return {number for number, (a, b) in spans if not meant.isdisjoint(found.path[a:b])}


def _kind(name: bytes, words: Sequence[bytes]) -> Kind | None:
    """Return what a program or script does for a build; None for all that make no phase."""
    if name in SCRIPTS:
        return Kind.CONFIGURE
    if name in GENERATORS:
        is_other = any(word in OTHER_WORK for word in words[:1]) or CHECK in words
        return None if is_other else Kind.CONFIGURE
    return Kind.MAKE if name in MAKERS else None


def _name(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _result(status: int) -> str:
    return "succeeded" if status == 0 else f"failed ({status})" if status > 0 else "not known"
