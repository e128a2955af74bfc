# SPDX-License-Identifier: Apache-2.0
"""What the kernel module and BPF cost, in instructions of a guest whose clock counts them.

QEMU's `-icount shift=0` makes an instruction of the guest a nanosecond: figures repeat within
one percent on any machine. They do not show cache misses and contention.
init_on_alloc=0, for zeroing by `rep stosb` counts each byte as an instruction. Addresses are not
random: page tables of another shape are another page to zero, which hides what a fork costs. What
is read more than once is read alternately natively and traced: the median difference is printed.

    PYTHONPATH=tests:bench python3 -m kernel.instructions [KERNEL...]

Exit status 1 when a figure is above what is asked of it, or an addition differs by more than 15 %
from that of the first kernel and by more than the kernels' own paths to a tracepoint do.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from backends import BPF
from vm import kernels, machine
from vm.archive import ArchiveError, run
from vm.rig import BUILD

PROGRAMS = Path(__file__).resolve().parent
BOOT = machine.Boot(
    cpus=1,
    append=("init_on_alloc=0", "norandmaps", "nokaslr"),
    qemu=("-icount shift=0,sleep=off",),
    seconds=3600,
)


# While the guest waits for a busy host its clock jumps from timer to timer: udev may lose patience
# during the boot, and the kernel says so. The figures are of what comes after it.
BOOTED = "virtme-ng-init: starting script"

Figures = dict[str, list[int]]  # readings by name, in the order they were made


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what tracing adds to a native figure, and the most it may add.

    The most is that of the first kernel; another's own paths may cost SPREAD and OWN more.
    """

    name: str
    traced: str
    native: str
    most: int | None
    is_by_turns: bool = True  # each reading follows a native one

    def added(self, figures: Figures) -> int:
        """Return what tracing adds; without a native figure, the whole."""
        traced = figures[self.traced]
        native = figures[self.native] if self.native else [0] * len(traced)
        if not self.is_by_turns:
            return round(median(traced) - median(native))
        return round(median(a - b for a, b in zip(traced, native, strict=True)))


def apart(name: str, traced: str, native: str) -> Row:
    """Return a line without a limit, of readings that were not made by turns with native ones."""
    return Row(name, traced, native, None, is_by_turns=False)


ROWS = (
    Row("open+close, traced", "traced_open_close", "native_open_close", 1900),
    Row("fork+exec+exit, traced", "traced_fork_exec_exit", "native_fork_exec_exit", 9200),
    Row("fork+exec+exit, with usage", "usage_fork_exec_exit", "native_fork_exec_exit", 11400),
    Row("getpid, traced", "traced_getpid", "native_getpid", None),
    Row("getpid, untraced", "untraced_getpid", "native_getpid", 65),
    Row("open+close, untraced", "untraced_open_close", "native_open_close", 150),
    Row("getpid, untraced, --isolate", "isolated_getpid", "native_getpid", 0),
    Row("getpid, after rmmod", "after_getpid", "native_getpid", 0),
    apart("open+close, traced by BPF", "bpf_open_close", "native_open_close"),
    apart("fork+exec+exit, traced by BPF", "bpf_fork_exec_exit", "native_fork_exec_exit"),
    apart("getpid, untraced, beside BPF", "beside_bpf_getpid", "native_getpid"),
    apart("open+close, untraced, beside BPF", "beside_bpf_open_close", "native_open_close"),
    Row("etrace_cat, a line", "etrace_cat_line", "", 1000),
    Row("trace_pipe, a line", "trace_pipe_line", "", None),
)
# Instructions by which kernels' own paths to the probe of two system calls differ, 24 (docs/
# testing.md counts them), and by which opening and closing varies natively.
OWN = 35
SPREAD = 0.15


def prepare(kernel: kernels.Kernel, work: Path) -> None:
    """Put the module and the programs of the guest into a new `work`."""
    shutil.rmtree(work, ignore_errors=True)
    (work / "bin").mkdir(parents=True)
    kernels.build_module(kernel, work)
    run("make", "-s", "-C", machine.GUEST, f"OUT={work}/bin")
    shutil.copy(BPF.path(), work / "bin")
    for source in sorted(PROGRAMS.glob("*.c")):
        flags = ("-O2", "-static", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
        run("gcc", *flags, "-o", work / "bin" / source.stem, source)


def measure(name: str) -> Figures:
    """Boot the kernel called `name` and return the figures that bench.sh leaves."""
    kernel = kernels.find(name)
    work = BUILD / f"bench-{name}"
    prepare(kernel, work)
    ran = machine.run(kernel, work, "bench.sh", boot=BOOT)
    complaints = machine.complaints(ran.console.partition(BOOTED)[2])
    if ran.status or complaints:
        raise machine.MachineError(
            f"{kernel.release}: bench.sh ended with {ran.status}; see {work / machine.CONSOLE}\n"
            + "\n".join([*complaints, ran.console[-2000:]])
        )
    return read(work / "out" / "bench")


def read(path: Path) -> Figures:
    """Read the lines `NAME NUMBER` of bench.sh."""
    figures: Figures = {}
    for line in path.read_text().splitlines():
        name, number = line.split()
        figures.setdefault(name, []).append(int(number))
    return figures


def table(name: str, figures: Figures) -> str:
    """Lay the figures of one kernel out as Markdown."""
    lines = [
        f"| {name}, instructions | native | with tracing | added | at most |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in ROWS:
        native = f"{round(median(figures[row.native])):,}" if row.native else ""
        most = "" if row.most is None else f"{row.most:,}"
        traced = f"{round(median(figures[row.traced])):,}"
        cells = [row.name, native, traced, f"{row.added(figures):+,}", most]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def allowed(row: Row, *, own: bool) -> int | None:
    """Return the most that a row may add: of its own kernel, or of another."""
    if not row.most:
        return None if row.most is None else 1  # a reading may be one off
    return row.most if own else round(row.most * (1 + SPREAD)) + OWN


def misses(name: str, figures: Figures, first: Figures) -> list[str]:
    """Return what is above its limit, or too far from the first kernel."""
    found = []
    for row in ROWS:
        added, wanted = row.added(figures), row.added(first)
        most = allowed(row, own=figures is first)
        if most is not None and added > most:
            found.append(f"{name}: {row.name}: {added:+,} is above {most:,}")
        if abs(added - wanted) > max(OWN, SPREAD * abs(wanted)):
            found.append(f"{name}: {row.name}: {added:+,} is not within 15 % of {wanted:+,}")
    return found


def main(argv: list[str]) -> int:
    """Measure each kernel and print its table."""
    first: Figures = {}
    missed = []
    try:
        for name in argv or [kernels.MACHINE]:
            figures = measure(name)
            first = first or figures
            print(table(name, figures), end="\n\n", flush=True)
            missed += misses(name, figures, first)
    except (ArchiveError, machine.MachineError, OSError) as error:
        print(f"bench/kernel/instructions.py: {error}", file=sys.stderr)
        return 1
    for text in missed:
        print(f"bench/kernel/instructions.py: {text}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
