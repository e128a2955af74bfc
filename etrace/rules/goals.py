# SPDX-License-Identifier: Apache-2.0
"""What make or ninja was asked for, and the outputs that ninja ran each command for.

The command line is read by `switches` of GNU make's main.c (4.3 and 4.4) and `ReadFlags` of
ninja.cc (1.11 to 1.13). Both permute words as getopt_long does. No variable of the environment
names goals, so the words are all there is.

`.ninja_log`: build_log.cc of ninja 1.11 (version 5), 1.12 (6) and 1.13 (7). After the line that
names the version, a line has five fields: start and end in milliseconds since ninja began to build,
a time of the output, its name, and the hash of the command in hexadecimal. The last line of an
output counts. The file may be anybody's: lines of another form are passed over, as ninja does it.

A command is an edge's when its hash is in the log, it ended with status 0 (ninja logs no other
command, so what the log has of one that failed is of an earlier build), and its times are possible:
ninja notes a start before it starts a command and the end after that ended, both since it began to
build, which is after its own start. When several edges of the log are possible, or one edge is for
several commands, none of them is known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from libetrace.core.hashes import murmur_hash, rapid_hash

from etrace.spec import builders

NAME = b".ninja_log"
#: Chromium's has 10 MB
MAX_LOG_BYTES = 64 << 20
MAX_OUTPUTS = 1_000_000
#: a name that is longer than a path may be is not one
MAX_NAME_BYTES = 4096
#: before a file of responses is hashed with a command
RESPONSES = b";rspfile="
_HEAD = re.compile(rb"# ninja log v(\d{1,4})\n")
_LINE = re.compile(rb"^(\d{1,10})\t(\d{1,10})\t-?\d{1,20}\t([^\t\n]+)\t([0-9a-f]{1,16})$", re.M)
HASHES: Mapping[int, Callable[[bytes], int]] = {5: murmur_hash, 6: murmur_hash, 7: rapid_hash}


@dataclass(frozen=True, slots=True)
class Edge:
    """A command that ninja ran; times in ms since ninja began to build."""

    start_ms: int
    end_ms: int
    outputs: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class NinjaLog:
    """The edges of a log by the hash of their command."""

    hash_of: Callable[[bytes], int]
    edges: Mapping[int, Sequence[Edge]]

    def find(self, command: bytes) -> Sequence[Edge]:
        """Return the edges with this command."""
        return self.edges.get(self.hash_of(command), ())


def log_version(text: bytes) -> int:
    """Return the version of a log, 0 for another text."""
    head = _HEAD.match(text)
    return int(head[1]) if head else 0


def read_log(text: bytes) -> NinjaLog | None:
    """Return the edges of a log; None when its version is not known, or it has too many outputs."""
    hash_of = HASHES.get(log_version(text))
    if hash_of is None:
        return None
    last: dict[bytes, tuple[int, int, int]] = {}
    for line in _LINE.finditer(text):
        if len(line[3]) <= MAX_NAME_BYTES:
            last[line[3]] = int(line[4], 16), int(line[1]), int(line[2])
        if len(last) > MAX_OUTPUTS:
            return None
    outputs: dict[tuple[int, int, int], list[bytes]] = {}
    for name, key in last.items():
        outputs.setdefault(key, []).append(name)
    edges: dict[int, list[Edge]] = {}
    for (number, start_ms, end_ms), names in outputs.items():
        edges.setdefault(number, []).append(Edge(start_ms, end_ms, tuple(names)))
    return NinjaLog(hash_of, edges)


MS = 1_000_000
#: each of ninja's two stamps is rounded down to a millisecond, and so is the beginning
SLACK_NS = 2 * MS
#: a tracer that waits for a processor stamps an end after ninja has noted it
LATE_NS = 500 * MS


@dataclass(frozen=True, slots=True)
class Job:
    """A process that ninja started to run a command; times in ns since the trace began.

    `responses`: what the response files of the command held.
    """

    process: int
    command: bytes
    start_ns: int
    end_ns: int
    responses: tuple[bytes, ...] = ()


def is_possible(edge: Edge, job: Job, ninja_start_ns: int, late_ns: int = 0) -> bool:
    """Return whether ninja can have begun to build at a time that fits the stamps of both."""
    ends_ns = job.end_ns - late_ns
    earliest = max(ninja_start_ns, ends_ns - edge.end_ms * MS) - SLACK_NS
    return earliest <= job.start_ns - edge.start_ms * MS + SLACK_NS


def find_edges(log: NinjaLog, jobs: Iterable[Job], ninja_start_ns: int) -> Mapping[int, Edge]:
    """Return the edge of each process of which it is known."""
    found: dict[int, Edge] = {}
    for job in jobs:
        for late_ns in (0, LATE_NS):
            possible = [
                edge for edge in _named(log, job) if is_possible(edge, job, ninja_start_ns, late_ns)
            ]
            if possible:
                break
        if len(possible) == 1:
            found[job.process] = possible[0]
    claims = Counter(map(id, found.values()))
    return {process: edge for process, edge in found.items() if claims[id(edge)] == 1}


def _named(log: NinjaLog, job: Job) -> Iterator[Edge]:
    """Yield the edges of the log with the command of a job."""
    yield from log.find(job.command)
    for content in job.responses:
        yield from log.find(job.command + RESPONSES + content)


@dataclass(frozen=True, slots=True)
class Builder:
    """A program that runs commands for targets.

    `valued` take the next word when nothing follows them in their own; `counted` do so when it is
    a number; `joined` take only what follows in their own word. With `ending` nothing is built.
    """

    valued: bytes
    counted: bytes
    joined: bytes
    ending: frozenset[bytes]
    valued_long: frozenset[bytes]
    counted_long: frozenset[bytes]
    has_variables: bool


MAKE = Builder(
    b"CfIoWE", b"jl", b"O", frozenset((b"v", b"h")),
    frozenset(
        b"directory file makefile include-dir old-file assume-old what-if new-file assume-new eval"
        b"".split()
    ),
    frozenset((b"jobs", b"load-average", b"max-load")),
    has_variables=True,
)  # fmt: skip
NINJA = Builder(
    b"Cfjkldw", b"", b"", frozenset((b"h", b"t")), frozenset(), frozenset(), has_variables=False
)
#: names of the files of programs
BUILDERS = {name: MAKE if tool == builders.MAKE else NINJA for name, tool in builders.TOOLS.items()}


class _NoGoalsError(Exception):
    """The words are not those of a build, or not all of them are understood."""


def find_goals(builder: Builder, argv: Sequence[bytes]) -> list[bytes]:
    """Return the goals of a command line; empty too when it has a word that is not understood."""
    try:
        return list(_goals(builder, iter(argv[1:])))
    except _NoGoalsError:
        return []


def _goals(builder: Builder, words: Iterator[bytes]) -> Iterator[bytes]:
    pushed: list[bytes] = []
    only_goals = False
    while True:
        word = pushed.pop() if pushed else next(words, None)
        if word is None:
            return
        if word == b"--" and not only_goals:
            only_goals = True
        elif only_goals or not word.startswith(b"-") or word == b"-":
            if word and not (builder.has_variables and b"=" in word):
                yield word
        elif word.startswith(b"--"):
            pushed += _skip_long(builder, word[2:], words)
        else:
            pushed += _skip_short(builder, word[1:], words)


def _skip_long(builder: Builder, word: bytes, words: Iterator[bytes]) -> list[bytes]:
    """Skip the value of a long option; return the next word when it is not that."""
    name, equals, _ = word.partition(b"=")
    taking = builder.valued_long | builder.counted_long
    if name in (b"help", b"version"):
        raise _NoGoalsError
    if name not in taking and any(each.startswith(name) for each in taking):
        raise _NoGoalsError  # shortened: which one is meant depends on the version
    if equals or name not in taking:
        return []
    word_after = next(words, None)
    return _unless_number(word_after) if name in builder.counted_long else []


def _skip_short(builder: Builder, letters: bytes, words: Iterator[bytes]) -> list[bytes]:
    """Skip a word of options and their value; return the next word when it is not of them."""
    for i in range(len(letters)):
        letter, rest = letters[i : i + 1], letters[i + 1 :]
        if letter in builder.ending:
            raise _NoGoalsError
        if letter in builder.joined:
            return []
        if letter in builder.valued:
            if not rest:
                next(words, None)
            return []
        if letter in builder.counted:
            return [] if rest else _unless_number(next(words, None))
    return []


def _unless_number(word: bytes | None) -> list[bytes]:
    return [] if word is None or word[:1].isdigit() else [word]
