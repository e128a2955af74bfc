# SPDX-License-Identifier: Apache-2.0
"""A run of ninja in an image -> the rules that its build.ninja declares now.

build.ninja is read here (ninja_manifest.py), so are dependency files that ninja leaves where they
are, and the log of those that it removes (`deps = gcc`, ninja_deps.py). No ninja runs.
"""

from __future__ import annotations

import getopt
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from etrace.errors import EtraceError
from etrace.rules import dependency_files, generated, ninja_deps, ninja_manifest
from etrace.rules.ninja_manifest import Edge
from etrace.rules.rule import Rule, Rules, absolute, is_there, place
from etrace.spec.builders import NINJA

SHORT, LONG = "d:f:j:k:l:nt:vw:C:h", ["help", "version", "verbose", "quiet"]


@dataclass(frozen=True, slots=True)
class Started:
    """Where a ninja works, and on which file."""

    directory: Path
    manifest: str


def started(words: Sequence[bytes], directory: Path) -> Started | None:
    """Return what the options of a ninja say; None for options that are not understood."""
    try:
        options, _ = getopt.gnu_getopt(list(map(os.fsdecode, words)), SHORT, LONG)
    except getopt.GetoptError:
        return None
    names = dict(options)
    return Started(directory / names.get("-C", ""), names.get("-f", "build.ninja"))


def ask(program: bytes, at: Started) -> Rules | str:
    """Return the rules of a ninja, or why they are not known."""
    if program.rpartition(b"/")[2] == b"samu":
        return "samurai does not say which inputs compilers named"
    try:
        manifest = ninja_manifest.read(at.directory, at.manifest)
    except OSError as error:
        return f"{error.filename or at.directory / at.manifest}: {error.strerror}"
    except EtraceError as error:
        return str(error)
    if any(edge.value("dyndep") for edge in manifest.edges):
        return "its build.ninja uses dyndep, which is not read"
    learned: Mapping[str, tuple[str, ...]] = {}
    if any(edge.value("deps") for edge in manifest.edges):
        log = at.directory / manifest.scope.value("builddir") / ninja_deps.NAME
        try:
            learned = ninja_deps.read(log)
        except EtraceError as error:
            return str(error)
    directory = str(at.directory)
    files = [absolute(directory, str(path)) for path in manifest.files]
    return Rules(
        at.directory, dict(_rules(manifest.edges, learned, at.directory)), tool=NINJA,
        makefiles=frozenset(files), roots=generated.roots(at.directory), makefile=files[0],
    )  # fmt: skip


def _rules(
    edges: Sequence[Edge], learned: Mapping[str, tuple[str, ...]], directory: Path
) -> Iterator[tuple[str, Rule]]:
    for edge in edges:
        outputs = edge.outputs + edge.implicit_outputs
        more: set[str] = set()
        if edge.value("deps"):
            more.update(*(learned.get(output, ()) for output in dict.fromkeys(outputs)))
        elif depfile := edge.value("depfile", is_escaped=False):
            more.update(dependency_files.inputs(directory / depfile))
        is_always = edge.is_phony and not (edge.inputs or edge.implicit or edge.order_only)
        needs, inputs = edge.inputs + edge.implicit, tuple(sorted(more))
        also = outputs if len(outputs) > 1 else ()
        recipe = [] if edge.is_phony else [edge.value("command")]
        for output in outputs:  # they share their lists
            yield output, Rule(
                output, needs, edge.order_only, inputs, also,
                # of an alias, only the inputs count
                is_target=not edge.is_phony, has_recipe=not edge.is_phony,
                is_phony=is_always and not is_there(place(str(directory), output)),
                recipe=recipe,
            )  # fmt: skip
