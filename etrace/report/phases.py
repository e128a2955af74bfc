# SPDX-License-Identifier: Apache-2.0
"""Phases of the build, and the probes of its configure runs, as columns."""

from __future__ import annotations

import os
from collections.abc import Sequence

from etrace.query.phases import Kind, Probe
from etrace.report.pack import Pack
from etrace.report.uses import Contents


def add_phases(pack: Pack, contents: Contents) -> None:
    """Add `command.phase`, the command that began it, and `probe.*`."""
    phases = contents.build.phases
    pack.add("command.phase", "i", phases.of)
    configured = [root for root, kind in phases.kinds.items() if kind is Kind.CONFIGURE]
    found = [(root, probe) for root in configured for probe in phases.probes(root)]
    pack.add("probe.phase", "i", (root for root, _ in found))
    _add_probes(pack, contents, [probe for _, probe in found])


def _add_probes(pack: Pack, contents: Contents, probes: Sequence[Probe]) -> None:
    base = min(contents.image["executions"]["start_ns"], default=0)
    pack.add("probe.isProbe", "B", (probe.is_probe for probe in probes))
    pack.add("probe.shown", "i", (probe.shown for probe in probes))
    pack.add("probe.what", "I", (pack.text(os.fsencode(probe.what)) for probe in probes))
    pack.add("probe.result", "I", (pack.text(os.fsencode(probe.result)) for probe in probes))
    pack.add("probe.start", "d", (probe.start_ns - base for probe in probes))
    pack.add("probe.ns", "d", (probe.elapsed_ns for probe in probes))
    pack.add("probe.n", "I", (probe.n_commands for probe in probes))
