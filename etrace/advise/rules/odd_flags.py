# SPDX-License-Identifier: Apache-2.0
"""Options that change what code costs, and that few of the compilations have, or lack."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from etrace.advise.build import Build, Compilation
from etrace.advise.finding import Evidence, Finding, Sure
from etrace.figures import agree, count
from etrace.texts import text_of

IDS = ("odd-flags",)
#: what an option says -> the options; the last one in a command line counts
KINDS = {
    "optimisation": re.compile(rb"-O(.*)"),
    "debug information": re.compile(rb"-g(\d|gdb\d?|dwarf(?:-\d)?)?"),
    "link-time optimisation": re.compile(rb"-f(?:no-)?lto(?:=.*)?"),
    "sanitizers": re.compile(rb"-fsanitize=.*"),
    "profiling": re.compile(rb"-pg|--coverage|-fprofile-.*|-ftest-coverage"),
}
LEAST, MINORITY = 10, 0.2
MAX_EVIDENCE = 10


def find(build: Build) -> Iterator[Finding]:
    """Find what few compilations of a language have."""
    by_language: dict[str, list[Compilation]] = {}
    for each in build.compilations:
        by_language.setdefault(each.language, []).append(each)
    odd: list[tuple[str, str, Compilation]] = []
    for compiled in by_language.values():
        if len(compiled) >= LEAST:
            for kind in KINDS:
                odd += _odd(build, compiled, kind)
    if not odd:
        return
    kinds = sorted({kind for kind, _, _ in odd})
    n = len({each.execution for _, _, each in odd})
    yield Finding(
        IDS[0],
        f"{agree(n, 'compilation{s} {differs|differ}')} from the others in {', '.join(kinds)}",
        f"They are few of {count(len(build.compilations), 'compilation')}: often an option that was"
        " left from a search for an error, or one that a target does not inherit.",
        "Set such options once for all targets (CFLAGS, CMAKE_BUILD_TYPE, Meson's buildtype), or"
        " say beside the target why it needs its own.",
        Sure.POSSIBLE,
        "it may be wanted: some sources need other options",
        None,
        tuple(
            Evidence(f"{build.labels.of(each.execution)}  {text}", None, each.execution)
            for _, text, each in odd[:MAX_EVIDENCE]
        ),
        len(odd),
    )


def _odd(
    build: Build, compiled: list[Compilation], kind: str
) -> Iterator[tuple[str, str, Compilation]]:
    values = [_value(build, each, kind) for each in compiled]
    usual, n = Counter(values).most_common(1)[0]
    if n == len(compiled) or len(compiled) - n > MINORITY * len(compiled):
        return
    for value, each in zip(values, compiled, strict=True):
        if value != usual:
            yield kind, f"{value or 'without'} (others: {usual or 'without'})", each


def _value(build: Build, each: Compilation, kind: str) -> str:
    """Return the option of a kind that counts, empty without one."""
    pattern, found = KINDS[kind], b""
    for word in build.labels.arguments(each.execution):
        if pattern.fullmatch(word):
            found = b"" if word in {b"-g0", b"-fno-lto"} else word
    return text_of(found)
