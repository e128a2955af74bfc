# SPDX-License-Identifier: Apache-2.0
"""Boots a kernel under QEMU's software emulation and runs a script of tests/vm/guest in it.

virtme-ng gives the guest this machine's files read-only and one work folder to write to: results
are files there. KVM is never used: a device may exist and still not run a stock kernel. The guest
is trusted only as far as its last line: the marker that entry.sh writes when the script has ended.
Everything the kernel said is kept in `console.log` and searched for complaints.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vm import arm64, patience
from vm.archive import tool
from vm.kernels import Kernel

GUEST = Path(__file__).resolve().parent / "guest"
MARKER = "ended"
CONSOLE = "console.log"
N_LAST_LINES = 60
HANGS = "hangs"  # the host makes it when a guest's time is over: entry.sh prints the tasks
DUMP_SECONDS = 60  # of its time: to do so
STARVED_S = 20.0  # an emulator that waited so long for a processor may see false stalls
# A guest's clock goes on while the emulator waits for a processor: its watchdogs have patience.
PATIENCE = (
    "rcupdate.rcu_cpu_stall_timeout=300",
    "sysctl.kernel.watchdog_thresh=60",
    "sysctl.kernel.hung_task_timeout_secs=900",
)
# It takes the processor's clock at its word: one that it measured while starved is off, and is then
# held back to what ticks say, so that a brief program seems to take no time.
CLOCK = "tsc=reliable"
# What a kernel also prints when nothing is wrong but that it did not run.
STALL = re.compile(r"detected stalls|self-detected stall|soft lockup|blocked for more than")
# What a kernel prints when it is hurt; none of these is in a boot of a kernel under test.
COMPLAINT = re.compile(
    r"BUG:|BUG at|BUG \w+ \(|(?<!virtme-ng-init: )WARNING:|"
    r"Oops|KASAN|UBSAN|KCSAN|ODEBUG|DEBUG_LOCKS|Call Trace|"
    r"possible (circular|recursive|irq)|inconsistent lock|held lock|suspicious RCU|"
    r"detected stalls|self-detected stall|rcu_tasks grace period|soft lockup|hard LOCKUP|"
    r"INFO: task|unable to handle|general protection|invalid opcode|stack-protector|refcount_t|"
    r"list_(add|del) corruption|Kernel panic|scheduling while atomic|sleeping function called|"
    r"page allocation failure|still has objects|kmemleak: \d+ new|possible memory leak|"
    r"trace_printk\(\) being used"
)


class MachineError(Exception):
    """The guest did not do what it was booted for; the message shows what it said last."""


@dataclass(frozen=True, slots=True)
class Boot:
    """How a guest is made; the defaults suit every test but measurements."""

    cpus: int = 2
    memory: str = "1G"
    append: tuple[str, ...] = ()  # to the kernel's command line
    qemu: tuple[str, ...] = ()
    # QEMU 7.2 with a thread a processor now and then goes on executing a breakpoint that the kernel
    # has patched away (a lockup in a probed function whose bytes in memory are a no-op).
    threads: str = os.environ.get("ETRACE_VM_THREADS", "single")
    seconds: float = 900  # for each phase (phases.sh), or for all when the script has none


@dataclass(frozen=True, slots=True)
class Ran:
    """What a guest left."""

    status: int  # of the script
    stdout: str
    console: str


def complaints(console: str) -> list[str]:
    """Return each line in which the kernel complained, with what follows it."""
    lines = console.splitlines()
    hits = [i for i, line in enumerate(lines) if COMPLAINT.search(line)]
    return ["\n".join(lines[max(0, i - 1) : i + 12]) for i in hits]


def run(kernel: Kernel, work: Path, script: str, *args: str, boot: Boot | None = None) -> Ran:
    """Boot `kernel`, run guest/`script` with `args` in `work`; return what it said.

    Fails when the guest did not reach the script's end; the script's own status is the caller's.
    """
    boot = boot or Boot()
    if not kernel.image.exists():
        raise MachineError(f"{kernel.image} is missing: apt-get install linux-image-amd64")
    tool(f"qemu-system-{kernel.machine}")
    shutil.copytree(GUEST, work / "guest", dirs_exist_ok=True)
    (work / "bin").mkdir(exist_ok=True)
    shutil.copy(_busybox(kernel), work / "bin" / "busybox")
    (work / MARKER).unlink(missing_ok=True)
    command = _command(kernel, work, [script, *args], boot)
    (work / HANGS).unlink(missing_ok=True)
    with (work / CONSOLE).open("wb") as console, (work / "stdout").open("wb") as stdout:
        # a guest with a root of its own writes the file by itself, and QEMU prints the console
        output = console if kernel.initrd else stdout
        spent, how = _wait(command, output.fileno(), console.fileno(), boot.seconds, work)
    if not how and (work / HANGS).exists():
        how = f"its tasks were printed after {spent}; it ended just then, so it is slow"
    if starved := starvation(spent, (work / CONSOLE).read_text(errors="replace")):
        raise MachineError(f"{kernel.release}: {script}: {starved}")
    if how or not (work / MARKER).exists():
        said = (work / "stdout").read_text(errors="replace")
        log = (work / CONSOLE).read_text(errors="replace")
        raise MachineError(
            f"{kernel.release}: {script} did not end: {how or 'no marker'}\n"
            f"--- its last output\n{_last(said)}\n--- console ({work / CONSOLE})\n{_last(log)}"
        )
    return left(work)


def left(work: Path) -> Ran:
    """Return what the last guest left in `work`, without running it again."""
    return Ran(
        int((work / MARKER).read_text()),
        (work / "stdout").read_text(errors="replace"),
        (work / CONSOLE).read_text(errors="replace"),
    )


def starvation(spent: patience.OwnTime, console: str) -> str:
    """Return why a console's stalls say nothing of the module, or nothing when they do."""
    if spent.waited_s < STARVED_S or not (found := STALL.search(console)):
        return ""
    return (
        f"the emulator was starved: it had {spent}. The guest's '{found[0]}' may come of that and "
        "not of the module: run the test again when the machine has less to do"
    )


def _command(kernel: Kernel, work: Path, script: Sequence[str], boot: Boot) -> list[str]:
    words = ["oops=panic", *PATIENCE, *boot.append]
    qemu = list(boot.qemu)
    if boot.cpus > 1:
        qemu.append(f"-accel tcg,thread={boot.threads}")
    if kernel.initrd:
        return arm64.command(
            kernel.image, kernel.initrd, work, script, words, qemu, boot.memory, boot.cpus
        )
    inside = [f"{work}/guest/entry.sh", str(work), *script]
    command = [
        str(_vng()), "--verbose", "--run", str(kernel.image), "--disable-kvm", "--user", "root",
        f"--rwdir={work}", "--memory", boot.memory, "--cpus", str(boot.cpus),
    ]  # fmt: skip
    command += [f"--append={word}" for word in (*words, CLOCK)]
    command += [f"--qemu-opts={word}" for word in qemu]
    return [*command, "--", shlex.join(inside)]


def _vng() -> Path:
    for path in (Path(sys.executable).parent / "vng", shutil.which("vng")):
        if path and Path(path).exists():
            return Path(path)
    raise MachineError("vng is missing: pip install virtme-ng (dependency group vm)")


def _busybox(kernel: Kernel) -> Path:
    if not kernel.busybox.exists():
        raise MachineError("busybox is missing: apt-get install busybox-static")
    return kernel.busybox


def _wait(
    command: Sequence[str], stdout: int, stderr: int, seconds: float, work: Path
) -> tuple[patience.OwnTime, str]:
    """Run to the end; return the time that it had, and why it was ended before, or nothing."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # vng is a script of env python3
    if os.geteuid() == 0:  # the tests beside it can wait, its clock cannot
        command = ["nice", "-n", "-10", *command]
    started = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
        env={**os.environ, "PATH": path}, start_new_session=True,
    )  # fmt: skip
    try:
        spent, ended = patience.wait(
            started, seconds, DUMP_SECONDS, (work / HANGS).touch,
            lambda: len(list((work / "out").glob("*.status"))),
        )  # fmt: skip
        return spent, "" if ended else f"still running after {spent}"
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def _last(text: str) -> str:
    return "\n".join(text.splitlines()[-N_LAST_LINES:])
