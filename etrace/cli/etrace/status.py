# SPDX-License-Identifier: Apache-2.0
"""`etrace status`: show the session of the kernel module and what it lost."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from etrace.capture.kmod.loading import probes
from etrace.capture.kmod.sessions import host, session
from etrace.capture.kmod.sessions.session import View
from etrace.capture.kmod.system.control import Counter, Phase, Status
from etrace.cli.ending import printable
from etrace.cli.show.figures import count, size

EXIT_RUNS, EXIT_NONE = 0, 1
EPILOG = """\
It needs no rights and prints the counters of the kernel module, losses first. They are
described in docs/capture-kmod.md.

exit status: 0 a session is running; 1 no session is running, or it died.
"""
CHANGES = {
    Phase.STARTING: "a session is being started",
    Phase.STOPPING: "a session is being stopped",
}
COLLECTOR_LOSSES = (("lost", "not collected"), ("dropped_records", "no room for records"))
LOSSES = (Counter.LOST_EVENTS, Counter.LOST_RECORDS, Counter.UNTRACKED, Counter.NO_MEMORY)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace status`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def as_json(view: View) -> dict[str, Any]:
    """Return the object that --json prints."""
    state, status = view.state, view.status
    out: dict[str, Any] = {"running": view.running, "module_loaded": status is not None}
    if state is not None:
        out |= {
            "root": state.root,
            "started": state.started,
            "directory": str(state.output.directory),
            "trace": str(state.output.capturing),
            "collector_pid": state.collector.pid,
            "collected": view.collected,
            "collector_says": view.said,
        }
    if status is not None:
        out |= {
            "kernel_state": status.phase.name.lower(),
            "session": status.session,
            "counters": status.named_counters(),
            "missing_probes": list(status.missing_probes),
        }
    return out


def headline(view: View) -> str:
    """Return the state in one or two lines."""
    if view.running:
        return "a session is running"
    if view.state is not None:
        return (
            "the session died: its collector has ended\n  do this: sudo etrace stop keeps its trace"
        )
    if view.status is not None and view.status.phase is Phase.RUNNING:
        return f"process {view.status.owner_pid} runs a session that etrace did not start"
    if view.status is not None and view.status.phase in CHANGES:
        return CHANGES[view.status.phase]
    return "no session is running"


def _counters(status: Status) -> list[tuple[str, str]]:
    order = [*LOSSES, *(c for c in Counter if c not in LOSSES)]
    return [(c.name.lower().replace("_", " "), f"{status.count(c):,}") for c in order]


def rows(view: View) -> list[tuple[str, str]]:
    """Return names and values to print."""
    found: list[tuple[str, str]] = []
    if (state := view.state) is not None:
        elapsed = max(time.time() - state.started, 0)
        found += [
            ("root", state.root),
            ("since", f"{session.clock(state.started)} ({elapsed:,.0f} s)"),
            ("trace", str(state.output.capturing)),
        ]
    if "bytes" in view.collected:
        programs = count(view.collected.get("executions", 0), "program")
        found.append(("written", f"{size(view.collected['bytes'])}, {programs}"))
    found += [(name, f"{n:,}") for key, name in COLLECTOR_LOSSES if (n := view.collected.get(key))]
    if error := view.collected.get("error"):
        found.append(("not written", str(error)))
    if view.said:
        found.append(("collector says", view.said))
    if view.status is not None and view.status.phase is not Phase.IDLE:
        found += _counters(view.status)
        missing = view.status.missing_probes
        found += [("missing probe", f"{name}: {probes.lost((name,))[0]}") for name in missing]
    return found


def run(args: argparse.Namespace) -> int:
    """Run `etrace status`."""
    view = session.look(host.real())
    if args.json:
        print(json.dumps(as_json(view), indent=1))
    else:
        print(f"etrace: {headline(view)}")
        table = rows(view)
        width = max((len(name) for name, _ in table), default=0)
        for name, value in table:
            print(f"  {name:<{width}}  {printable(value)}")
    return EXIT_RUNS if view.running else EXIT_NONE
