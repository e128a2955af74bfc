# SPDX-License-Identifier: Apache-2.0
"""The rules, one a file: `IDS` are the ids of its findings, `find(build)` yields the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from etrace.advise.build import Build
from etrace.advise.finding import Finding
from etrace.advise.rules import (
    compiled_twice,
    compiler_cache,
    configure,
    copies,
    downloads,
    headers,
    ignored_failures,
    jobs,
    linker,
    long_command,
    odd_flags,
    serial_makes,
    sleeps,
    waits,
    wrappers,
)

_MODULES = (
    *(jobs, long_command, serial_makes, configure, compiled_twice, wrappers, compiler_cache),
    *(headers, linker, copies, sleeps, waits, downloads, odd_flags, ignored_failures),
)
RULES: tuple[tuple[tuple[str, ...], Callable[[Build], Iterator[Finding]]], ...] = tuple(
    (rule.IDS, rule.find) for rule in _MODULES
)


def findings(build: Build) -> list[Finding]:
    """Return the findings of a build, the largest gain first, those without a gain last."""
    found = [each for _, find in RULES for each in find(build)]
    return sorted(found, key=lambda each: -(each.gain.time_ns if each.gain else 0))
