# SPDX-License-Identifier: Apache-2.0
"""Links that the end of the build waits for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from etrace.advise.build import Build, none_of
from etrace.advise.finding import Finding, Sure
from etrace.figures import count, seconds

IDS = ("slow-links",)
DEBUG = re.compile(rb"-g([123]|gdb.*|dwarf.*|)")
OF_LINKER = 1  # linked.type
#: linkers of ELF files -> those that take less time for the same
FASTER = {"ld": ("lld", "mold", "gold"), "gold": ("lld", "mold"), "lld": ("mold",)}


def find(build: Build) -> Iterator[Finding]:
    """Take all links out."""
    if not build.classes.are_known:
        return
    linked = build.image["linked"]
    links = {
        row for row, kind in zip(linked["execution"], linked["type"], strict=True)
        if kind == OF_LINKER and not build.is_probe(row)
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
        _remedy(build, links),
        Sure.POSSIBLE,
        "the bound is that of links that take no time; a remedy gains less",
        gain,
        build.commands(times),
        len(times),
    )


def _remedy(build: Build, links: Iterable[int]) -> str:
    """Return what makes links shorter, but for what the build does already."""
    options = {
        word for each in build.compilations for word in build.labels.arguments(each.execution)
    }
    less = ["shared objects for programs of tests"]
    if any(DEBUG.fullmatch(word) for word in options) and b"-gsplit-dwarf" not in options:
        less.insert(0, "no debug information in the objects (-gsplit-dwarf)")
    if any(word.startswith(b"-flto") for word in options):
        less.append("no -flto in builds for development")
    used = {tool.name for row in links if (tool := build.tool(row)) is not None}
    faster = {name for linker in used for name in FASTER.get(linker, ())} - used
    found = f"Link less: {', '.join(less)}."
    if not faster:
        return found
    *first, last = sorted(faster, key=FASTER["ld"].index)
    names = f"{', '.join(first)} or {last}" if first else last
    return (
        f"{found} Try another linker (-fuse-ld={names}) and trace again: what it gains is not"
        " predicted here."
    )
