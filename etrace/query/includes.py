# SPDX-License-Identifier: Apache-2.0
"""Headers -> what it costs the build to read them, from the trace alone.

A header counts once for each compilation that read it (revcomps_for.py says which that is), with
its size when the trace was parsed. Seconds come from all compilations by least squares:
time = a + b * (bytes of sources) + c * (bytes of headers). Each compilation counts by its relative
error (weight 1 / time^2): by the absolute one, a few long compilations, whose time goes elsewhere,
would decide, and headers would cost more than the whole build. Time is CPU time where the trace has
it for all of them, else wall time. A header costs c * (bytes it was read for); the error is the
standard error of c. It is an estimate: a byte of one header is taken to cost as much as one of any
other, and sources have a rate of their own, because they hold most of the code.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.depend.path_opens import owned_paths
from libetrace.image.file import Image

from etrace.query.compilations import WRITE_ONLY, Compilers
from etrace.query.dependencies import walk
from etrace.query.rows.classes import product
from etrace.query.rows.file_kinds import FileKind, FileKinds
from etrace.spec.database import NONE

#: kinds of the files that a compilation reads for their text
TEXTS = frozenset((FileKind.SOURCE, FileKind.HEADER))
#: compilations that a fit with an error needs: one more than it has unknowns
MIN_POINTS = 4
#: a determinant this small is one of numbers in proportion
PROPORTIONAL = 1e-12
#: of a compilation: bytes of sources, bytes of headers, time in ns
Point = tuple[float, float, float]


class Header(NamedTuple):
    """What one header costs; `path` is a row of `paths`."""

    path: int
    n_opens: int
    n_compilations: int
    n_bytes: int  #: its size
    read_bytes: int  #: size times compilations
    share: float  #: of the bytes of all sources and headers that compilations read


class Fit(NamedTuple):
    """Nanoseconds of compiling for each byte of a header, and their standard error."""

    ns_a_byte: float
    error: float


class Includes(NamedTuple):
    """All headers, the most expensive first; `fit` is None with too few compilations."""

    headers: tuple[Header, ...]
    fit: Fit | None
    n_compilations: int
    read_bytes: int  #: of all sources and headers


class Growth(NamedTuple):
    """A header in two builds, by path; `noise` is None when a build has no fit."""

    path: bytes
    before: int  #: bytes times compilations
    after: int
    ns: float | None
    noise: float | None  #: two standard errors of `ns`

    @property
    def is_noise(self) -> bool | None:
        """Whether the seconds do not differ beyond their error; None when unknown."""
        return None if self.ns is None or self.noise is None else abs(self.ns) <= self.noise


def fit_headers(points: Sequence[Point]) -> Fit | None:
    """Return c of time = a + b * sources + c * headers by weighted least squares; None without one.

    There is none with too few compilations, when headers are in proportion to sources, or when more
    bytes of headers would take less time. Compilations without a time do not count.
    """
    points = [point for point in points if point[2] > 0]
    n = len(points)
    if n < MIN_POINTS:
        return None
    weights = [time**-2 for _, _, time in points]
    s, h, y = (_centred([point[i] for point in points], weights) for i in range(3))
    ss, hh, sh, sy, hy = (
        _dot(weights, one, other) for one, other in ((s, s), (h, h), (s, h), (s, y), (h, y))
    )
    if ss:
        determinant = ss * hh - sh * sh
        if determinant <= ss * hh * PROPORTIONAL:
            return None
        b, c = (hh * sy - sh * hy) / determinant, (ss * hy - sh * sy) / determinant
        variance, n_unknown = ss / determinant, 3
    elif hh:  # sources of one size add nothing: a line
        b, c, variance, n_unknown = 0.0, hy / hh, 1 / hh, 2
    else:
        return None
    if c <= 0:
        return None
    rest = [y_i - b * s_i - c * h_i for s_i, h_i, y_i in zip(s, h, y, strict=True)]
    return Fit(c, math.sqrt(_dot(weights, rest, rest) / (n - n_unknown) * variance))


def _centred(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    weighted = math.fsum(w * value for w, value in zip(weights, values, strict=True))
    mean = weighted / math.fsum(weights)
    return [value - mean for value in values]


def _dot(weights: Sequence[float], a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(w * x * y for w, x, y in zip(weights, a, b, strict=True))


class _Reads:
    """Sources and headers that compilations read, and for each how many compilations did."""

    def __init__(self, image: Image, rows: Collection[int], kinds: FileKinds) -> None:
        compilers = Compilers(image)
        owner = array("i", map(compilers.of, range(image["executions"].n_rows)))
        n_compilations = product(image, "compilations", "compilations").n_rows
        found = owned_paths([image["opens"]], owner, n_compilations, WRITE_ONLY)
        self._start, self._path, n_opens = found.start, found.path, found.n_opens
        if len(rows) < n_compilations:
            n_opens = self._keep(sorted(rows), n_opens)
        readers = Counter(self._path)
        kind = {path: kinds.of(path) for path in readers}
        self.kind = {path: each for path, each in kind.items() if each in TEXTS}
        self.n_readers = {path: readers[path] for path in self.kind}
        self.n_opens = readers
        for path, n in zip(self._path, n_opens, strict=True):
            if n > 1:
                self.n_opens[path] += n - 1

    def _keep(self, rows: Sequence[int], n_opens: array[int]) -> array[int]:
        """Keep what some compilations read."""
        spans = [slice(self._start[row], self._start[row + 1]) for row in rows]
        ends = accumulate((span.stop - span.start for span in spans), initial=0)
        path, kept = self._path, array("I")
        self._start, self._path = array("Q", ends), array("I")
        for span in spans:
            self._path += path[span]
            kept += n_opens[span]
        return kept

    def sums(self, n_bytes: Mapping[int, int], kind: FileKind) -> list[float]:
        """Return the bytes of one kind that each compilation read, in the order of rows."""
        own = {path: n for path, n in n_bytes.items() if self.kind[path] is kind}
        ends = array("q", accumulate(map(_Weights(own).__getitem__, self._path), initial=0))
        return [float(ends[end] - ends[start]) for start, end in pairwise(self._start)]


class _Weights(dict[int, int]):
    """Weights of paths, 0 of all others."""

    def __missing__(self, path: int) -> int:
        self[path] = 0
        return 0


def includes(
    image: Image, only: Collection[int] | None = None, kinds: FileKinds | None = None
) -> Includes:
    """Return what headers cost all compilations, or some (rows of `compilations`).

    `kinds` are those of the image, when somebody knows them already.
    """
    table = product(image, "compilations", "compilations")
    rows = range(table.n_rows) if only is None else only
    kinds = kinds or FileKinds(image)
    reads = _Reads(image, rows, kinds)
    n_bytes = {path: max(0, kinds.size_of(path)) for path in reads.n_readers}
    total = sum(n_bytes[path] * n for path, n in reads.n_readers.items())
    headers = (
        Header(path, reads.n_opens[path], n, n_bytes[path], n_bytes[path] * n,
               n_bytes[path] * n / total if total else 0.0)
        for path, n in reads.n_readers.items()
        if reads.kind[path] is FileKind.HEADER
    )  # fmt: skip
    ordered = sorted(headers, key=lambda h: (-h.read_bytes, h.path))
    return Includes(tuple(ordered), _fit(image, rows, reads, n_bytes), len(rows), total)


def _fit(
    image: Image, rows: Collection[int], reads: _Reads, n_bytes: Mapping[int, int]
) -> Fit | None:
    sources, headers = (reads.sums(n_bytes, kind) for kind in (FileKind.SOURCE, FileKind.HEADER))
    times = _times(image)
    return fit_headers(
        [
            (s, h, float(times[row]))
            for s, h, row in zip(sources, headers, sorted(rows), strict=True)
        ]
    )


def _times(image: Image) -> list[int]:
    """Return the time of each compilation: CPU time where all have it, else wall time."""
    execution, elapsed = image["compilations"]["execution"], image["executions"]["elapsed_ns"]
    wall = [elapsed[row] for row in execution]
    if "usage" not in image.tables:
        return wall
    cpu, compilers, binary = [0] * len(wall), Compilers(image), image["executions"]["binary"]
    usage = image["usage"]
    for row, (user, system) in enumerate(zip(usage["user_ns"], usage["system_ns"], strict=True)):
        at = compilers.of(row)
        if at != NONE and NONE not in (user, system):
            cpu[at] += user + system
        elif at != NONE and binary[row] != NONE:
            return wall
    return cpu


def compilations_of(image: Image, modules: Sequence[bytes]) -> frozenset[int]:
    """Return the compilations (rows) on the way to some linked modules."""
    compilers, walked = Compilers(image), walk(Dependencies(image), modules, Rules())
    return frozenset(map(compilers.of, walked.executions)) - {NONE}


def compare(before: Image, after: Image, modules: Sequence[bytes] = ()) -> list[Growth]:
    """Return the headers whose bytes differ between two builds, the largest change first.

    With `modules`, only compilations that went into these count.
    """
    a = includes(before, compilations_of(before, modules) if modules else None)
    b = includes(after, compilations_of(after, modules) if modules else None)
    return grown((before, a), (after, b))


def grown(before: tuple[Image, Includes], after: tuple[Image, Includes]) -> list[Growth]:
    """Return the headers whose bytes differ between two builds, the largest change first.

    Headers below the source roots match by their paths in them.
    """
    old, new = _by_name(*before), _by_name(*after)
    fits = before[1].fit, after[1].fit
    found = (_growth(name, old.get(name, 0), new.get(name, 0), *fits) for name in old | new)
    changed = (each for each in found if each.before != each.after)
    return sorted(changed, key=lambda g: (-abs(g.after - g.before), g.path))


def _growth(name: bytes, before: int, after: int, a: Fit | None, b: Fit | None) -> Growth:
    if a is None or b is None:
        return Growth(name, before, after, None, None)
    noise = 2 * math.hypot(before * a.error, after * b.error)
    return Growth(name, before, after, after * b.ns_a_byte - before * a.ns_a_byte, noise)


def _by_name(image: Image, found: Includes) -> dict[bytes, int]:
    root = image.attributes.get("source_root", "").encode(errors="surrogateescape")
    prefix = root.rstrip(b"/") + b"/"
    return {
        image.path_string(header.path).removeprefix(prefix): header.read_bytes
        for header in found.headers
    }
