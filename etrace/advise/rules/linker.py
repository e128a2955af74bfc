# SPDX-License-Identifier: Apache-2.0
"""Links that the end of the build waits for."""

from __future__ import annotations

from collections.abc import Iterator

from etrace.advise.build import Build, none_of
from etrace.advise.finding import Finding, Sure
from etrace.figures import count, seconds

IDS = ("slow-links",)
OF_LINKER = 1  # linked.type


def find(build: Build) -> Iterator[Finding]:
    """Take all links out."""
    if not build.classes.are_known:
        return
    linked = build.image["linked"]
    links = {
        row for row, kind in zip(linked["execution"], linked["type"], strict=True)
        if kind == OF_LINKER
    }  # fmt: skip
    of_link = build.nearest(links)
    gain = build.gain(none_of(of_link), is_bound=True)
    if gain is None:
        return
    times = dict.fromkeys(links, 0)
    for row, link in of_link.items():
        times[link] += round(build.simulation.own_ns[row])
    programs = sorted({build.labels.program(row) for row in links})
    yield Finding(
        IDS[0],
        f"{count(len(links), 'link')} by {', '.join(programs)}: {seconds(sum(times.values()))}",
        "A link waits for all of its objects, so it runs late and often alone.",
        "Link less: no debug information in the objects (-gsplit-dwarf), shared objects for"
        " programs of tests, no -flto in builds for development. Try another linker"
        " (-fuse-ld=lld, mold or gold) and trace again: what it gains is not predicted here.",
        Sure.POSSIBLE,
        "the bound is that of links that take no time; another linker gains less",
        gain,
        build.commands(times),
        len(times),
    )
