# SPDX-License-Identifier: Apache-2.0
"""No cache of compilations, or one that never answers, and why.

A launcher such as ccache missed when the compiler below it compiled. ccache 4 keeps manifests and
results in files whose names end in M and R: which of them it found says why it missed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from etrace.advise.build import Build, Compilation
from etrace.advise.finding import Finding, Gain, Sure
from etrace.figures import count, seconds
from etrace.spec.database import ACCESS, EXISTS, NONE

IDS = ("no-compiler-cache", "cache-misses")
#: what ccache takes to find and copy a result, below etrace run (docs/advice.md)
HIT_NS = 20_000_000
MOST = 0.8
_ENTRY = re.compile(rb"/[0-9a-z]/(?:[0-9a-z]/)*[0-9a-z]{20,}([MR])$")
#: ccache, its fork, the compiler before its exec and after
MAX_ABOVE = 4
#: an execution -> it and what it started
Rows = dict[int, tuple[int, ...]]
CACHED = frozenset(("c", "c++", "objective-c", "objective-c++", "cuda"))


def find(build: Build) -> Iterator[Finding]:
    """Let each compilation that ran take what a hit takes."""
    compiled = [each for each in build.compilations if each.language in CACHED]
    of = {each.execution: _launcher(build, each.execution) for each in compiled}
    launched = [each for each in compiled if of[each.execution] != NONE]
    missed = {of[each.execution]: each for each in launched if _is_miss(build, each)}
    if not launched:
        rows = {each.execution: each.executions for each in compiled}
        if gain := _gain(build, rows):
            yield _absent(build, rows, gain)
    elif len(missed) >= MOST * len(launched):
        own: dict[int, list[int]] = {}
        for row, launcher in build.nearest(missed.keys()).items():
            own.setdefault(launcher, []).append(row)
        rows = {launcher: tuple(each) for launcher, each in own.items()}
        if gain := _gain(build, rows):
            yield _missing(build, rows, len(launched), gain)


def _absent(build: Build, rows: Rows, gain: Gain) -> Finding:
    times = {row: build.own_ns(own) for row, own in rows.items()}
    return Finding(
        IDS[0],
        f"{count(len(rows), 'compilation')} without a cache",
        f"They took {seconds(sum(times.values()))} of work. A build of the same sources with the"
        " same flags compiles all of it again.",
        "Install ccache and put it before the compiler: CC='ccache gcc', or /usr/lib/ccache first"
        " in PATH; CMake: -DCMAKE_C_COMPILER_LAUNCHER=ccache.",
        Sure.LIKELY,
        f"a hit is taken to cost {HIT_NS // 1_000_000} ms; changed sources are compiled as before",
        gain,
        build.commands(times),
        len(rows),
    )


def _missing(build: Build, rows: Rows, n_launched: int, gain: Gain) -> Finding:
    times = {row: build.own_ns(own) for row, own in rows.items()}
    reasons = Counter(_reason(build, row) for row in rows)
    why = "; ".join(f"{n:,} {reason}" for reason, n in reasons.most_common())
    return Finding(
        IDS[1],
        f"the cache missed {len(rows):,} of {count(n_launched, 'compilation')}",
        f"{why[0].upper()}{why[1:]}.",
        "Build twice and look at `ccache -s -v`, which counts reasons. For another directory set"
        " CCACHE_BASEDIR and -fdebug-prefix-map; for headers that a build makes again keep their"
        " contents and times; for __TIME__ set SOURCE_DATE_EPOCH; and make the cache large enough"
        " (ccache -M).",
        Sure.POSSIBLE,
        "it may have been the first build with an empty cache",
        gain,
        build.commands(times),
        len(rows),
    )


def _gain(build: Build, rows: Rows) -> Gain | None:
    factors: dict[int, float] = {}
    for each in rows.values():
        own = build.own_ns(each)
        if own > HIT_NS:
            factors.update(dict.fromkeys(each, HIT_NS / own))
    return build.gain(factors, when="the next build of the same sources")


def _launcher(build: Build, row: int) -> int:
    """Return the launcher at or above a compiler, NONE without one."""
    for _ in range(MAX_ABOVE):
        if row == NONE or build.tool_kind(row) == "launcher":
            return row
        row = build.above[row]
    return NONE


def _is_miss(build: Build, each: Compilation) -> bool:
    """Return whether a compiler below the launcher compiled."""
    return build.tool_kind(each.execution) != "launcher"


def _reason(build: Build, launcher: int) -> str:
    """Return why a cache had no result, as far as the files that it opened show."""
    opens, image = build.image["opens"], build.image
    found, has_written = set[bytes](), False
    for at in build.executions.span("opens.start", launcher):
        entry = _ENTRY.search(image.path_string(opens["path"][at]))
        mode = opens["mode"][at]
        if entry and mode & ACCESS:
            has_written = True
        elif entry and mode & EXISTS:
            found.add(entry[1])
    if b"R" in found:
        return "found a result and compiled nevertheless"
    if b"M" in found:
        return "with the same source and flags, but other headers than before"
    if has_written:
        return "with a source, flags or a directory that the cache did not know"
    return "did not look into the cache: CCACHE_DISABLE, or options that it does not cache"
