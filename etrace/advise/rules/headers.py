# SPDX-License-Identifier: Apache-2.0
"""Headers that most compilations read and that cost more than the noise.

What a header costs is what `cas includes` says, least squares over all compilations, but for two
standard errors: compilations that read much also compile much. Of that, precompiled headers spared
half at most where it was tried (docs/advice.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from etrace.advise.build import MAX_EVIDENCE, Build
from etrace.advise.finding import Evidence, Finding, Sure
from etrace.figures import count, seconds

IDS = ("costly-headers",)
#: of all compilations that read it, and of the bytes of all sources and headers
READ_BY, SHARE = 0.5, 0.02
MAX_ERROR = 0.5
#: of what headers cost, and of the rate in doubt
SPARED, N_ERRORS = 0.5, 2


def find(build: Build) -> Iterator[Finding]:
    """Take the reading of headers that most compilations share out of these."""
    found = build.includes
    fit = found.fit if found else None
    if found is None or fit is None or fit.ns_a_byte <= 0 or fit.error > MAX_ERROR * fit.ns_a_byte:
        return
    shared = [
        each for each in found.headers
        if each.n_compilations >= READ_BY * found.n_compilations and each.share >= SHARE
    ]  # fmt: skip
    rate = max(fit.ns_a_byte - N_ERRORS * fit.error, 0.0)
    cost = sum(each.read_bytes for each in shared) * rate
    rows = [row for each in build.compilations for row in each.executions]
    work = build.own_ns(rows)
    if not work or not shared:
        return
    part = max(1 - SPARED * cost / work, 0.0)
    gain = build.gain(dict.fromkeys(rows, part), is_bound=True)
    if gain is None:
        return
    evidence = (
        Evidence(
            f"{build.shown(build.image.path_string(each.path))}"
            f" ({count(each.n_compilations, 'compilation')})",
            round(each.read_bytes * rate), path=each.path,
        )
        for each in shared[:MAX_EVIDENCE]
    )  # fmt: skip
    yield Finding(
        IDS[0],
        f"{count(len(shared), 'header')} that most compilations read: {seconds(round(cost))}",
        f"They are {sum(each.share for each in shared):.0%} of the bytes of all sources and headers"
        f" that {count(found.n_compilations, 'compilation')} read.",
        "Precompile them (one header with these #includes, -include and -Winvalid-pch; CMake:"
        " target_precompile_headers; Meson: cpp_pch), include them where they are needed only, or"
        " declare instead of including.",
        Sure.POSSIBLE,
        "a byte of one header is taken to cost as much as one of another, and a precompiled one"
        " half of it",
        gain,
        tuple(evidence),
        len(shared),
    )
