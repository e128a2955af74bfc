# SPDX-License-Identifier: Apache-2.0
"""A traced build -> the edges of a graph that makes the same files again.

An edge is the largest part of the build that contains no make or ninja: a compiler with its
children, a recipe's shell with its pipes, a whole configure. Edges that write one file, or that
hand over a file which was gone at the end, or that wait for each other, are one edge; its commands
run in the order in which they began. Inputs are the files that the trace says were read, of the
kinds that `cas deps` shows.
"""

from __future__ import annotations

import bisect
import os
import re
import shlex
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from posixpath import dirname, join, normpath

from libetrace.depend.execution_facts import find_thread_owners
from libetrace.depend.pipe_names import find_tokens
from libetrace.image.file import Image

from etrace.export.groups import Groups, strong_components
from etrace.export.replayed_files import Written, write_back
from etrace.query.files import BITS, READ, WRITE
from etrace.query.outside import fetches, program_of, reads_clock
from etrace.query.rows.file_kinds import USUAL
from etrace.query.rows.labels import MAKES
from etrace.query.rows.path_names import RENAMED
from etrace.query.rows.records import Records
from etrace.spec.database import ACCESS, EXISTS, NONE, file_type

#: programs that only start others by rules that the trace has followed
DRIVERS = frozenset(map(os.fsdecode, MAKES))
#: programs and scripts that make files by themselves and run drivers only to try something
WHOLE = frozenset({"configure", "config.status", "meson", "ctest", "cpack"})
#: directories whose files are there to save time only: of ccache and the like
CACHES = frozenset({".cache", ".ccache"})
#: ninja has no escape for it
_BREAK = re.compile(r"[\n\r]")
BY_DRIVERS = "written by make, ninja or a shell that started them"


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a file by an edge; times in ns."""

    edge: int
    access: int
    begin_ns: int
    end_ns: int


@dataclass(slots=True)
class Build:
    """One edge: rows of `executions`, and paths."""

    commands: list[int] = field(default_factory=list)
    inputs: set[str] = field(default_factory=set)
    outputs: set[str] = field(default_factory=set)
    #: directories of files that are gone, which other commands made
    directories: set[str] = field(default_factory=set)
    #: directories that it gives their names by renaming others: they must not be there before
    renamed: set[str] = field(default_factory=set)
    #: contents of response files that are gone, which no command made
    responses: dict[str, bytes] = field(default_factory=dict)
    #: how they are written again
    written: Written = field(default_factory=Written)


@dataclass(frozen=True, slots=True)
class Replay:
    """The edges in order of time, and what they do not do, by reason."""

    builds: Sequence[Build]
    left_out: Mapping[str, Sequence[str]]
    #: commands that run again and may do something else, by reason
    differing: Mapping[str, Sequence[str]]


class _Processes:
    """The processes of an image as a tree: their executions, and which of them are edges."""

    def __init__(self, records: Records) -> None:
        self._records = records
        image = records.image
        self._table = image["executions"]
        self.upids = list(self._table["upid"])
        owners = find_thread_owners(image)
        #: first row of the process -> its rows, threads included
        self.rows: dict[int, list[int]] = defaultdict(list)
        self.node: list[int] = []
        #: upid -> its first row
        self.first: dict[int, int] = {}
        for row, upid in enumerate(self.upids):
            self.first.setdefault(upid, row)
        for row, upid in enumerate(self.upids):
            owner = owners[row]
            node = self.first[upid if owner in (row, NONE) else self.upids[owner]]
            self.node.append(node)
            self.rows[node].append(row)
        self.children: dict[int, list[int]] = defaultdict(list)
        self.roots: list[int] = []
        for node in self.rows:
            parent = self._table["parent"][node]
            above = NONE if parent == NONE else self.node[parent]
            (self.roots if above in (NONE, node) else self.children[above]).append(node)

    def programs(self, node: int) -> list[int]:
        """Return the executions of a process that ran a program."""
        return [row for row in self.rows[node] if self._table["binary"][row] != NONE]

    def name(self, row: int) -> str:
        """Return the name of a program."""
        return PurePosixPath(self._records.path(self._table["binary"][row])).name

    def is_driver(self, node: int) -> bool:
        """Whether the process became make, ninja or `cmake --build`."""
        return any(
            self.name(row) in DRIVERS
            or (self.name(row) == "cmake" and "--build" in self._records.argv(row))
            for row in self.programs(node)
        )

    def is_whole(self, node: int) -> bool:
        """Whether what the process runs belongs to it, drivers included."""
        for row in self.programs(node):
            argv = self._records.argv(row)
            if self.name(row) == "cmake" and "--build" not in argv:
                return True
            if any(PurePosixPath(word).name in WHOLE for word in argv[:2]):
                return True
        return False

    @cached_property
    def drives(self) -> set[int]:
        """Processes that are drivers or that started one, outside of a whole."""
        found: set[int] = set()
        todo = [(root, False) for root in self.roots]
        while todo:
            node, is_done = todo.pop()
            if is_done:
                if self.is_driver(node) or any(child in found for child in self.children[node]):
                    found.add(node)
            elif not self.is_whole(node):
                todo.append((node, True))
                todo += [(child, False) for child in self.children[node]]
        return found

    def edges(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the first process of each edge and all rows of its processes."""
        todo = list(self.roots)
        while todo:
            node = todo.pop()
            if node in self.drives or not self.programs(node):
                todo += self.children[node]
            else:
                yield node, self._below(node)

    def _below(self, node: int) -> list[int]:
        found, todo = list[int](), [node]
        while todo:
            at = todo.pop()
            found += self.rows[at]
            todo += self.children[at]
        return found


class _Finder:
    """Finds the edges of an image."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.image = image = records.image
        self.processes = _Processes(self.records)
        start = image["executions"]["start_ns"]
        found = sorted(
            ((self.processes.programs(node)[0], rows) for node, rows in self.processes.edges()),
            key=lambda edge: (start[edge[0]], edge[0]),
        )
        self.commands = [row for row, _ in found]
        self.edge_of = {row: number for number, (_, rows) in enumerate(found) for row in rows}
        self.groups = Groups(len(found))
        self.left_out: dict[str, list[str]] = defaultdict(list)

    def _is_shown(self, path: int) -> bool:
        return self._is_file(path) and self.records.file_kinds.of(path) in USUAL

    def _is_there(self, path: int) -> bool:
        return bool(self.records.file_kinds.temporaries.mode_of(path) & EXISTS)

    def _is_file(self, path: int) -> bool:
        """Whether a path was a file or a link at the end, or was gone."""
        mode = self.records.file_kinds.temporaries.mode_of(path)
        kind = file_type(mode)
        return not mode or stat.S_ISREG(kind) or stat.S_ISLNK(kind)

    def uses(self) -> dict[int, list[Use]]:
        """Return for each file its uses by edges, in order of time; note those by drivers."""
        opens, tokens = self.image["opens"], find_tokens(self.image)
        found: dict[int, list[Use]] = defaultdict(list)
        by_drivers: set[int] = set()
        for execution, path, mode, begin, end in zip(
            opens["execution"], opens["path"], opens["mode"], opens["open_ns"], opens["close_ns"],
            strict=True,
        ):  # fmt: skip
            access = BITS[mode & ACCESS]
            edge = self.edge_of.get(execution)
            if edge is not None:
                found[path].append(Use(edge, access, begin, max(begin, end)))
            elif access & WRITE:
                by_drivers.add(path)
        for path in sorted(by_drivers):
            if path not in found and self._is_there(path) and self._is_shown(path):
                self.left_out[BY_DRIVERS].append(self.records.path(path))
        for own in found.values():
            own.sort(key=lambda use: (use.begin_ns, use.edge))
        return {
            path: own for path, own in found.items()
            if path not in tokens and self._is_file(path)
            and not CACHES & set(self.records.path(path).split("/"))
        }  # fmt: skip

    def find(self) -> Replay:
        """Return the edges."""
        uses = self.uses()
        for path, own in uses.items():
            self._join(path, own)
        self._join_nameless(uses)
        needs = self._needs(uses)
        while self._join_circles(needs):
            needs = self._needs(uses)
        return self._replay(uses)

    def _join(self, path: int, own: Sequence[Use]) -> None:
        """Make one edge of those that write one file, or hand over one that is gone."""
        writers = [use for use in own if use.access & WRITE]
        if self._is_there(path):
            self.groups.join(use.edge for use in writers)
            return
        last: Use | None = None
        for use in own:
            if last is not None and use.access & READ:
                self.groups.join((last.edge, use.edge))
            if use.access & WRITE:
                last = use

    def _join_nameless(self, uses: Mapping[int, Sequence[Use]]) -> None:
        """Let commands that wrote nothing go with the maker of a file that they name: chmod, rm."""
        maker = {
            self.records.path(path): use.edge
            for path, own in uses.items()
            if self._is_there(path)
            for use in own
            if use.access & WRITE
        }
        writers = {use.edge for own in uses.values() for use in own if use.access & WRITE}
        for edge, row in enumerate(self.commands):
            if edge in writers:
                continue
            if found := [maker[name] for name in self._named(row) if name in maker]:
                self.groups.join((edge, *found))

    def _made_directories(self) -> Mapping[str, set[int]]:
        """Return what calls of mkdir and install name, directories among it -> their edges."""
        found: dict[str, set[int]] = defaultdict(set)
        for row, binary in enumerate(self.image["executions"]["binary"]):
            if binary != NONE and self.processes.name(row) in ("mkdir", "install"):
                edge = self.edge_of.get(row)
                for name in self._named(row):
                    found[name].update(() if edge is None else (edge,))
        return found

    def _renamed_directories(self) -> Iterator[tuple[int, str]]:
        """Yield (edge, directory) of directories that are there under the name of a rename."""
        changes, opens = self.image["changes"], self.image["opens"]
        for row, kind in zip(changes["open"], changes["kind"], strict=True):
            edge = self.edge_of.get(opens["execution"][row])
            path = opens["path"][row]
            mode = self.records.file_kinds.temporaries.mode_of(path)
            if kind == RENAMED and edge is not None and stat.S_ISDIR(file_type(mode)):
                yield self.groups.find(edge), self.records.path(path)

    def _named(self, row: int) -> list[str]:
        """Return the words of a command as paths."""
        directory = self.records.directory(row)
        return [normpath(join(directory, word)) for word in self._words(row)]

    def _words(self, row: int) -> list[str]:
        argv = self.records.argv(row)
        if len(argv) > 2 and argv[1].startswith("-") and "c" in argv[1]:
            script = argv[3] if argv[2] == "--" and len(argv) > 3 else argv[2]
            try:
                return shlex.split(script, comments=True)
            except ValueError:
                return script.split()
        return argv[1:]

    def _responses(self, uses: Mapping[int, Sequence[Use]]) -> Iterator[tuple[int, str, bytes]]:
        """Yield (edge, path, content) of response files that are gone and that no edge wrote."""
        if "response_files" not in self.image.tables:
            return
        table = self.image["response_files"]
        for upid, name, content in zip(table["upid"], table["path"], table["content"], strict=True):
            edge = self.edge_of.get(self.processes.first.get(upid, NONE))
            path = self.image.find_path(self.image.string(name))
            if edge is None or (path >= 0 and self._is_there(path)):
                continue
            if not any(use.access & WRITE for use in uses.get(path, ())):
                text = os.fsdecode(self.image.string(name))
                yield self.groups.find(edge), text, self.image.string(content)

    def _inputs(self, own: Sequence[Use]) -> Iterator[tuple[int, int]]:
        """Yield (maker, reader) of a file; NONE for a file that was there before."""
        writers = [use for use in own if use.access & WRITE]
        begins = [use.begin_ns for use in writers]
        for use in own:
            if not use.access & READ:
                continue
            n_before = bisect.bisect_left(begins, use.end_ns)
            if not writers:
                yield NONE, self.groups.find(use.edge)
            elif n_before:
                yield self.groups.find(writers[n_before - 1].edge), self.groups.find(use.edge)

    def _needs(self, uses: Mapping[int, Sequence[Use]]) -> dict[int, set[int]]:
        """Return for each edge those that make its inputs."""
        found: dict[int, set[int]] = defaultdict(set)
        for path, own in uses.items():
            if self._is_there(path):
                for maker, reader in self._inputs(own):
                    if maker not in (NONE, reader):
                        found[reader].add(maker)
        return found

    def _join_circles(self, needs: Mapping[int, set[int]]) -> bool:
        """Make one edge of those that wait for each other; return whether there were any."""
        circles = [circle for circle in strong_components(needs) if len(circle) > 1]
        for circle in circles:
            self.groups.join(circle)
        return bool(circles)

    def _replay(self, uses: Mapping[int, Sequence[Use]]) -> Replay:
        builds: dict[int, Build] = defaultdict(Build)
        for edge, row in enumerate(self.commands):
            builds[self.groups.find(edge)].commands.append(row)
        for group, name, content in self._responses(uses):
            builds[group].responses[name] = content
        for group, name in self._renamed_directories():
            builds[group].renamed.add(name)
        made = self._made_directories()
        for path, own in uses.items():
            text = self.records.path(path)
            if not self._is_there(path):
                above = dirname(text)
                makers = set(map(self.groups.find, made.get(above, ())))
                for group in {self.groups.find(use.edge) for use in own} - makers:
                    if above in made:
                        builds[group].directories.add(above)
                continue
            writers = {self.groups.find(use.edge) for use in own if use.access & WRITE}
            for group in writers:
                builds[group].outputs.add(text)
            if self._is_shown(path):
                for _, reader in self._inputs(own):
                    builds[reader].inputs.add(text)
        kept = []
        for _, build in sorted(builds.items()):
            build.inputs -= build.outputs
            if not build.outputs:
                self.left_out["made no file"] += [self._shown(row) for row in build.commands]
            elif any(map(_BREAK.search, (*build.inputs, *build.outputs, *build.responses))):
                self.left_out["a name has a line break"] += [
                    self._shown(row) for row in build.commands
                ]
            elif (written := write_back(build.responses, self._last_name(build))) is None:
                self.left_out["response files too long for a shell"] += [
                    self._shown(row) for row in build.commands
                ]
            else:
                build.written = written
                kept.append(build)
        return Replay(kept, dict(self.left_out), self._differing())

    def _differing(self) -> Mapping[str, Sequence[str]]:
        """Return the commands of edges that ask a server, the clock or a person."""
        found: dict[str, list[str]] = defaultdict(list)
        opens = self.image["opens"]
        for row, binary in enumerate(self.image["executions"]["binary"]):
            if binary == NONE or row not in self.edge_of:
                continue
            name, words = program_of(self.records.path(binary), self.records.argv(row))
            if fetches(name, words):
                found["asks a server"].append(self._shown(row))
            elif reads_clock(name, words):
                found["asks for the time"].append(self._shown(row))
        terminal = self.image.find_path(b"/dev/tty")
        for row, path, mode in zip(opens["execution"], opens["path"], opens["mode"], strict=True):
            if path == terminal and row in self.edge_of and BITS[mode & ACCESS] & READ:
                found["reads what a person types"].append(self._shown(row))
        return dict(found)

    def _last_name(self, build: Build) -> str:
        return self.processes.name(build.commands[-1])

    def _shown(self, row: int) -> str:
        text = shlex.join(self.records.argv(row)).replace("\n", " ")
        return text if len(text) <= 100 else text[:97] + "..."


def replay(image: Image) -> Replay:
    """Return the edges of a build. Files have kinds only after `cas pp`."""
    return _Finder(Records(image)).find()
