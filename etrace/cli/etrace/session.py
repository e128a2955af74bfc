# SPDX-License-Identifier: Apache-2.0
"""`etrace start`, `status` and `stop`: a session of the kernel module, or of BPF programs."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from etrace.capture.bpf import session as bpf_session
from etrace.capture.files import aside_message
from etrace.capture.kmod.beginning import DEFAULT_BUFFER_KIB, Plan, begin
from etrace.capture.kmod.ending import Ending, without_probes
from etrace.capture.kmod.host import Host
from etrace.capture.kmod.stage import View, clock, look
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.control import Counter, Option, Phase, Status
from etrace.capture.kmod.system.owner import invoking, need_root
from etrace.capture.kmod.teardown import end
from etrace.cli.ending import printable, say
from etrace.cli.etrace.run import report
from etrace.cli.options.common import add_examples, add_format, add_output, add_quiet, positive
from etrace.errors import UsageError
from etrace.figures import count, size

# ---- start ----

START_EPILOG = """\
It uses the kernel module, and loads it if need be; --backend bpf does without.
Without --pid and --cgroup it traces everything that the calling shell starts from now on. The root
is the nearest ancestor of this command that is not sudo, doas, su, pkexec, runuser or etrace.

With the module, the trace is DIR/.nfsdb.capturing while it is written. `sudo etrace stop` renames
it to .nfsdb (with --zstd .nfsdb.zst) and writes .nfsdb.stats. Both belong to the user who called
sudo and are made with that user's rights. An older trace is kept as .nfsdb.old.

exit status: 0 the session has started; 2 wrong usage; 125 the session could not start, and nothing
has changed.
"""
FLAGS = (
    (
        "--env",
        Option.ENVIRONMENT,
        "record the environment of every program, not only make's without its secrets",
    ),
    ("--mounts", Option.MOUNTS, "record mount and umount"),
    ("--thread-names", Option.THREAD_NAMES, "record thread names (Comm)"),
    (
        "--open-once",
        Option.OPEN_ONCE,
        "leave out read-only opens that a program repeats",
    ),
    (
        "--isolate",
        Option.ISOLATE,
        "remove the cost for untraced processes; refused while others trace system calls",
    ),
    ("--descendants", Option.DESCENDANTS, "also trace what the root has already started"),
)


KMOD, BPF = "kmod", "bpf"
#: options of `etrace start` that BPF programs do not have
OF_MODULE = ("open_once", "isolate", "descendants", "zstd", "module")


def add_backend(parser: argparse.ArgumentParser, text: str, default: str | None = KMOD) -> None:
    """Add --backend."""
    parser.add_argument("--backend", choices=(KMOD, BPF), default=default, help=text)


def declare_start(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace start`."""
    parser.epilog = START_EPILOG
    root = parser.add_mutually_exclusive_group()
    root.add_argument(
        "--pid", type=positive, metavar="PID", help="trace this process and what it starts"
    )
    root.add_argument("--cgroup", metavar="PATH", help="trace this control group (version 2)")
    add_output(parser)
    add_backend(parser, "how to capture (default: %(default)s); bpf needs no kernel module")
    for name, _, text in FLAGS:
        parser.add_argument(name, action="store_true", help=text)
    parser.add_argument(
        "--no-usage",
        dest="usage",
        action="store_false",
        help="do not record CPU time, memory and I/O of processes (Usage lines)",
    )
    parser.add_argument("--zstd", action="store_true", help="compress the trace (.nfsdb.zst)")
    parser.add_argument(
        "--buffer-size",
        type=positive,
        metavar="KIB",
        default=0,
        help=f"size of the buffer of each CPU (default: {DEFAULT_BUFFER_KIB}, "
        "less on a machine with little memory)",
    )
    parser.add_argument(
        "--kernel-module",
        dest="module",
        type=Path,
        metavar="FILE",
        help="load this etrace.ko; only root may be able to write to it and its directories",
    )
    add_quiet(parser)
    add_examples(parser, "sudo etrace start", "sudo etrace start --pid 1234 -o traces")


def options(args: argparse.Namespace) -> Option:
    """Return the options of the kernel module."""
    found = Option.USAGE if args.usage else Option.NONE
    for name, option, _ in FLAGS:
        if getattr(args, name.removeprefix("--").replace("-", "_")):
            found |= option
    return found


def _root(args: argparse.Namespace) -> process.Process | None:
    """Return the process to trace; None for a control group."""
    if args.cgroup:
        return None
    pid = args.pid or process.calling_shell()
    root = process.identify(pid)
    if root is None:
        raise UsageError(f"there is no process {pid}", "see `ps -e`")
    return root


def plan(args: argparse.Namespace) -> Plan:
    """Return the session that the command line asks for."""
    return Plan(
        directory=args.output,
        owner=invoking(os.environ),
        root_process=_root(args),
        cgroup=process.cgroup_below_mount(args.cgroup) if args.cgroup else "",
        options=options(args),
        zstd=args.zstd,
        buffer_kib=args.buffer_size,
        module=args.module,
    )


def _say_line(text: str) -> None:
    say(f"etrace: {text}\n")


def _bpf_plan(args: argparse.Namespace) -> bpf_session.Plan:
    """Return the session of BPF programs that the command line asks for."""
    for name in OF_MODULE:
        if getattr(args, name):
            option = "--kernel-module" if name == "module" else f"--{name.replace('_', '-')}"
            raise UsageError(f"{option}: bpf cannot do that", "leave out --backend bpf")
    options = {
        "env": args.env,
        "mounts": args.mounts,
        "thread_names": args.thread_names,
        "usage": args.usage,
        "buffer_kib": args.buffer_size,
    }
    cgroup = process.cgroup_directory(args.cgroup) if args.cgroup else ""
    return bpf_session.Plan(args.output, invoking(os.environ), _root(args), cgroup, options)


def _start_bpf(args: argparse.Namespace) -> int:
    state = bpf_session.begin(Host().states, _bpf_plan(args))
    if not args.quiet:
        say(
            f"etrace: recording {state.root} into {os.path.dirname(state.trace)}; "  # noqa: PTH120
            "to end it: sudo etrace stop\n"
        )
    return 0


def run_start(args: argparse.Namespace) -> int:
    """Run `etrace start`."""
    need_root()
    if args.backend == BPF:
        return _start_bpf(args)
    begun = begin(Host(), plan(args), _say_line)
    if not args.quiet:
        say(
            f"etrace: recording {begun.state.root} into {begun.state.output.directory}; "
            "to end it: sudo etrace stop\n"
        )
    return 0


# ---- status ----

EXIT_RUNS, EXIT_NONE = 0, 1
STATUS_EPILOG = """\
It needs no rights and prints the counters of the kernel module, losses first. They are
described in docs/capture-kmod.md.

exit status: 0 a session is running; 1 no session is running, or it died.
"""
BPF_DIED = (
    "the session died: etrace-bpf has ended\n  do this: sudo etrace stop says where its trace is"
)
CHANGES = {
    Phase.STARTING: "a session is being started",
    Phase.STOPPING: "a session is being stopped",
}
COLLECTOR_LOSSES = (("lost", "not collected"), ("dropped_records", "no room for records"))
LOSSES_FIRST = (Counter.LOST_EVENTS, Counter.LOST_RECORDS, Counter.UNTRACKED, Counter.NO_MEMORY)


def declare_status(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace status`."""
    parser.epilog = STATUS_EPILOG
    add_format(parser, "text", "json")
    add_examples(parser, "etrace status", "etrace status --json")


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
    order = [*LOSSES_FIRST, *(c for c in Counter if c not in LOSSES_FIRST)]
    return [(c.name.lower().replace("_", " "), f"{status.count(c):,}") for c in order]


def rows(view: View) -> list[tuple[str, str]]:
    """Return names and values to print."""
    found: list[tuple[str, str]] = []
    if (state := view.state) is not None:
        elapsed = max(time.time() - state.started, 0)
        found += [
            ("root", state.root),
            ("since", f"{clock(state.started)} ({elapsed:,.0f} s)"),
            ("trace", str(state.output.capturing)),
        ]
    if "bytes" in view.collected:
        commands = count(view.collected.get("executions", 0), "command")
        found.append(("written", f"{size(view.collected['bytes'])}, {commands}"))
    found += [(name, f"{n:,}") for key, name in COLLECTOR_LOSSES if (n := view.collected.get(key))]
    if error := view.collected.get("error"):
        found.append(("not written", str(error)))
    if view.said:
        found.append(("collector says", view.said))
    if view.status is not None and view.status.phase is not Phase.IDLE:
        found += _counters(view.status)
        missing = view.status.missing_probes
        found += [("missing probe", f"{name}: {without_probes((name,))[0]}") for name in missing]
    return found


def _bpf_rows(state: bpf_session.State) -> list[tuple[str, str]]:
    elapsed = max(time.time() - state.started, 0)
    found = [
        ("root", state.root),
        ("since", f"{clock(state.started)} ({elapsed:,.0f} s)"),
        ("trace", state.trace),
    ]
    with contextlib.suppress(OSError):
        found.append(("written", size(Path(state.trace).stat().st_size)))
    return found


def _status_of_bpf(args: argparse.Namespace, state: bpf_session.State) -> int:
    """Print the state of a session of BPF programs."""
    runs = state.keeper.is_alive()
    if args.format == "json":
        facts = {"root": state.root, "started": state.started, "trace": state.trace}
        print(json.dumps({"running": runs, "backend": BPF, **facts}, indent=1))
        return EXIT_RUNS if runs else EXIT_NONE
    print(f"etrace: {'a session of BPF programs is running' if runs else BPF_DIED}")
    _print_rows(_bpf_rows(state))
    return EXIT_RUNS if runs else EXIT_NONE


def _print_rows(table: list[tuple[str, str]]) -> None:
    width = max((len(name) for name, _ in table), default=0)
    for name, value in table:
        print(f"  {name:<{width}}  {printable(value)}")


def run_status(args: argparse.Namespace) -> int:
    """Run `etrace status`."""
    of_bpf = bpf_session.read(Host().states)
    if of_bpf is not None:
        return _status_of_bpf(args, of_bpf)
    view = look(Host())
    if args.format == "json":
        print(json.dumps(as_json(view), indent=1))
    else:
        print(f"etrace: {headline(view)}")
        _print_rows(rows(view))
    return EXIT_RUNS if view.running else EXIT_NONE


# ---- stop ----

EXIT_LOST = 2
STOP_EPILOG = """\
It first writes everything that was recorded. Then it removes the ftrace instance, and unloads the
module if `etrace start` loaded it. A session that died (its collector was killed) is cleaned up in
the same way, and its trace is kept.

exit status: 0 the trace is complete; 2 events are lost, as reported (or wrong usage); 1 no session
is running; 125 the session could not be stopped. When it is interrupted, run it again.
"""


def declare_stop(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace stop`."""
    parser.epilog = STOP_EPILOG
    add_backend(parser, "end the session of this backend (default: the one that runs)", None)
    add_quiet(parser)
    add_examples(parser, "sudo etrace stop", "sudo etrace stop --quiet")


def report_losses(ending: Ending) -> None:
    """Report every loss with its count and reason."""
    for loss in ending.losses:
        least = "at least " if loss.at_least else ""
        say(f"etrace: {least}{count(loss.n, 'event')} lost: {loss.reason}\n")
    if ending.losses:
        shown = os.path.relpath(ending.trace)
        say(f"etrace: {shown} is incomplete: {count(ending.lost, 'event')} lost in all\n")
        say(f"  hint: {ending.hint}\n")


def _stop_bpf(args: argparse.Namespace) -> int:
    """End the session of BPF programs."""
    ended = bpf_session.end(Host().states, _say_line)
    for text in ended.messages:
        say(f"etrace: {printable(text)}\n")
    shown = os.path.relpath(ended.trace)
    if not ended.stats:
        say(f"etrace: etrace-bpf was ended before; {shown} has what it wrote until then\n")
        return EXIT_LOST
    if not args.quiet:
        report(ended.stats, ended.trace)
    return EXIT_LOST if ended.stats.get("lost") or ended.stats.get("untraced") else 0


def run_stop(args: argparse.Namespace) -> int:
    """Run `etrace stop`."""
    states = Host().states
    if args.backend == BPF or (args.backend is None and bpf_session.read(states) is not None):
        return _stop_bpf(args)
    ending = end(Host(), _say_line)
    if ending.aside and not args.quiet:
        say(f"etrace: {aside_message(ending.trace.name)}\n")
    if not ending.published:
        say("etrace: nothing was traced, so no trace was written\n")
    for warning in ending.warnings:
        say(f"etrace: {warning}\n")
    if not args.quiet:
        report(ending.stats, ending.trace)
    report_losses(ending)
    return EXIT_LOST if ending.lost else 0
