# SPDX-License-Identifier: Apache-2.0
"""Sources that are compiled again with the same flags, or for a static library beside a shared one.

Two compilations are the same when program, directory, sources and options are, but for where the
output and the dependencies go, and nothing wrote a file that either read in between.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from etrace.advise.build import Build, Compilation, none_of
from etrace.advise.finding import Finding, Sure
from etrace.figures import count, seconds
from etrace.spec.database import ACCESS, NONE

IDS = ("compiled-twice", "static-and-shared")
OUTPUTS = frozenset(("output", "depfile"))
#: options of position-independent code: libtool compiles with them, and once more without
PIC = frozenset(b"-fPIC -fpic -fPIE -fpie -DPIC -DDLL_EXPORT -prefer-pic -prefer-non-pic".split())
Key = tuple[bytes, ...]


def find(build: Build) -> Iterator[Finding]:
    """Compile each source once."""
    groups: defaultdict[Key, list[tuple[bool, Compilation]]] = defaultdict(list)
    for each in build.compilations:
        words = _words(build, each)
        key = (build.cwd(each.execution), *each.sources, b"", *(w for w in words if w not in PIC))
        groups[key].append((not PIC.isdisjoint(words), each))
    again, beside = list[Compilation](), list[Compilation]()
    for group in groups.values():
        pic = [each for is_pic, each in group if is_pic]
        other = [each for is_pic, each in group if not is_pic]
        for same in (pic, other):
            again += [b for b in same[1:] if not _has_changed(build, same[0], b)]
        if pic and other and not _has_changed(build, *sorted((pic[0], other[0]), key=_place)):
            beside.append(other[0])
    yield from _finding(
        build, IDS[0], again, "compiled again with the same flags",
        "The sources, the flags and all files that they read are those of an earlier compilation.",
        "Let one rule make the object, and all that need it use that object; or build a static"
        " library of the common sources once.",
        "the second compilation may be wanted if its output is used as a different file",
    )  # fmt: skip
    yield from _finding(
        build, IDS[1], beside, "compiled for a static library beside a shared one",
        "The flags differ in -fPIC and its like alone, as libtool does for the two libraries.",
        "If nobody needs the static library: ./configure --disable-static (or, the other way round,"
        " --disable-shared; with CMake and Meson one kind of library).",
        "the trace does not show whether the static library is wanted",
    )  # fmt: skip


def _finding(
    build: Build, name: str, again: Sequence[Compilation], title: str, what: str, how: str, why: str
) -> Iterator[Finding]:
    gain = build.gain(none_of(row for each in again for row in each.executions))
    if gain is None:
        return
    times = {each.execution: build.own_ns(each.executions) for each in again}
    yield Finding(
        name,
        f"{count(len(again), 'source')} {title}",
        f"{what} They took {seconds(sum(times.values()))} of work.",
        how,
        Sure.LIKELY,
        why,
        gain,
        build.commands(times),
        len(again),
    )


def _place(each: Compilation) -> int:
    return each.start_ns


def _words(build: Build, each: Compilation) -> list[bytes]:
    """Return the words of a command line but those that say where outputs go."""
    selected = build.compiler(each.execution)
    if selected is None:
        return list(build.labels.arguments(each.execution))
    tool, words = selected
    left: list[bytes] = [tool.name.encode()]
    for places, argument in tool.options.located(words):
        if argument.meaning not in OUTPUTS and not argument.flag.startswith((b"-MT", b"-MQ")):
            left += [words[place] for place in places]
    return left


def _has_changed(build: Build, a: Compilation, b: Compilation) -> bool:
    """Return whether a file that the later one read was written after the earlier one had begun.

    Its own outputs do not count.
    """
    opens, begin, end = build.image["opens"], *(build.began_ns + _place(each) for each in (a, b))
    own = {*a.executions, *b.executions}
    read = {
        opens["path"][at]
        for row in b.executions
        for at in build.executions.span("opens.start", row)
        if not opens["mode"][at] & ACCESS
    }
    for path in read:
        uses = build.writes.get(path, [])
        first = bisect_left(uses, (begin, NONE))
        for time_ns, row in islice(uses, first, None):
            if time_ns > end:
                break
            if row not in own:
                return True
    return False
