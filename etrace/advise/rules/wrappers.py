# SPDX-License-Identifier: Apache-2.0
"""Scripts between make and the compiler, such as libtool: what they take beside the compiler.

A wrapper is what runs a script and has a compilation below it, inside one job of make. What else
it starts (sed, rm, mkdir) is its work too, but not other tools: what links is not a wrapper's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from etrace.advise.build import Build, none_of
from etrace.advise.finding import Finding, Sure
from etrace.figures import count, seconds
from etrace.query.rows.labels import MAKES, SHELLS
from etrace.spec.database import NONE

IDS = ("compiler-wrappers",)
INTERPRETERS = SHELLS | frozenset((b"perl", b"python3", b"python", b"ruby", b"tclsh"))


def find(build: Build) -> Iterator[Finding]:
    """Take the wrappers out of all compilations."""
    compiled = {row for each in build.compilations for row in each.executions}
    scripts = _outermost_scripts(build)
    wrapped = {  # the outermost wrapper of each compilation
        each.execution: scripts[each.execution]
        for each in build.compilations
        if scripts[each.execution] != NONE
    }
    rows = _work(build, set(wrapped.values()), compiled)
    gain = build.gain(none_of(rows), is_bound=True)
    if gain is None:
        return
    times, names = Counter[int](), Counter[str]()
    for row, wrapper in rows.items():
        times[wrapper] += round(build.simulation.own_ns[row])
    for wrapper in wrapped.values():
        names[_script(build, wrapper)] += 1
    most = names.most_common(1)[0][0]
    yield Finding(
        IDS[0],
        f"{count(len(wrapped), 'compilation')} through {most}",
        f"It took {seconds(sum(times.values()))} of work beside the compilers, with"
        f" {len(rows):,} commands and forks of its own.",
        "For libtool: ./configure CONFIG_SHELL=/bin/dash (a faster shell), --disable-static (half"
        " the calls) or slibtool; for depcomp: --disable-dependency-tracking where the tree is"
        " built once. Call the compiler itself where the script adds nothing.",
        Sure.LIKELY,
        "some of its work may be needed",
        gain,
        build.commands(times),
        len(times),
    )


def _outermost_scripts(build: Build) -> list[int]:
    """Return the outermost script at or above each execution and below make, NONE without one."""
    n = build.executions.n_rows
    script, is_below_make = [NONE] * n, [False] * n
    for row in build.by_time:
        above, name = build.above[row], build.program(row)
        if name in MAKES:
            is_below_make[row] = True
        elif above != NONE and is_below_make[above]:
            is_below_make[row], script[row] = True, script[above]
            if script[row] == NONE and name in INTERPRETERS and _script(build, row):
                script[row] = row
    return script


def _work(build: Build, wrappers: set[int], compiled: set[int]) -> dict[int, int]:
    """Return what wrappers and what they started did, but for compilers and other tools."""
    within = [NONE] * build.executions.n_rows
    found: dict[int, int] = {}
    for row in build.by_time:
        above = build.above[row]
        if row in wrappers:
            within[row] = row
        elif above != NONE and row not in compiled and not build.tool_kind(row):
            within[row] = within[above]
        if within[row] != NONE:
            found[row] = within[row]
    return found


def _script(build: Build, row: int) -> str:
    """Return the program and its script, empty for `sh -c`."""
    words = build.labels.arguments(row)[1:2]
    if not words or words[0].startswith(b"-"):
        return ""
    return build.labels.of(row)
