# SPDX-License-Identifier: Apache-2.0
"""`sudo etrace start`: trace with the kernel module until `etrace stop`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from etrace.capture.kmod.sessions import host, session
from etrace.capture.kmod.system import cgroup, process
from etrace.capture.kmod.system.control import Option
from etrace.capture.kmod.system.owner import invoking, need_root
from etrace.cli.ending import tell
from etrace.cli.options.common import add_output, positive
from etrace.errors import UsageError

EPILOG = """\
Without --pid and --cgroup it traces everything that the calling shell starts from now on. The root
is the nearest ancestor of this command that is not sudo, doas, su, pkexec, runuser or etrace.

The trace is DIR/.nfsdb.capturing while it is written. `sudo etrace stop` renames it to .nfsdb (with
--zstd .nfsdb.zst) and writes .nfsdb.stats. Both belong to the user who called sudo and are made
with that user's rights. An older trace is kept as .nfsdb.old.

exit status: 0 the session has started; 2 wrong usage; 125 the session could not start, and nothing
has changed.

  sudo etrace start; make; sudo etrace stop; cas parse
"""
FLAGS = (
    ("--env", Option.ENVIRONMENT, "record the environment of every program"),
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
    ("--descendants", Option.DESCENDANTS, "also trace what the root started before"),
)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace start`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    root = parser.add_mutually_exclusive_group()
    root.add_argument("--pid", type=positive, metavar="PID", help="trace this process instead")
    root.add_argument(
        "--cgroup", metavar="PATH", help="trace this control group (version 2) instead"
    )
    add_output(parser)
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
        help=f"size of the buffer of each CPU (default: {session.DEFAULT_BUFFER_KIB}, "
        "less on a machine with little memory)",
    )
    parser.add_argument(
        "--module",
        type=Path,
        metavar="FILE",
        help="load this etrace.ko; only root may be able to write to it and its directories",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")


def options(args: argparse.Namespace) -> Option:
    """Return the options of the kernel module."""
    found = Option.USAGE if args.usage else Option.NONE
    for name, option, _ in FLAGS:
        if getattr(args, name.removeprefix("--").replace("-", "_")):
            found |= option
    return found


def plan(args: argparse.Namespace) -> session.Plan:
    """Return the session that the command line asks for."""
    root_pid = 0 if args.cgroup else args.pid or process.calling_shell()
    root = process.identify(root_pid) if root_pid else None
    if root_pid and root is None:
        raise UsageError(f"there is no process {root_pid}", "see `ps -e`")
    return session.Plan(
        directory=args.output,
        owner=invoking(os.environ),
        root_process=root,
        cgroup=cgroup.below_mount(args.cgroup) if args.cgroup else "",
        options=options(args),
        zstd=args.zstd,
        buffer_kib=args.buffer_size,
        module=args.module,
    )


def run(args: argparse.Namespace) -> int:
    """Run `etrace start`."""
    need_root()
    state = session.begin(host.real(), plan(args), lambda text: tell(f"etrace: {text}\n"))
    if not args.quiet:
        tell(
            f"etrace: recording {state.root} into {state.output.directory}; "
            "to end it: sudo etrace stop\n"
        )
    return 0
