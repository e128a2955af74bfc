# SPDX-License-Identifier: Apache-2.0
"""What capture costs: a build, a configure script, programs and opens, beside strace and Bear.

`make bench-capture ROUNDS=5` prints these tables alone. BPF is in them where this user may load it.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import paired
from paired import Candidate
from samples import PROGRAMS, TOP, compiled

from etrace.capture import ptrace
from etrace.capture.bpf import backend as bpf
from etrace.capture.hashing import Helper
from etrace.capture.options import Options
from etrace.nfsdb import hash_records
from etrace.spec import syscalls

sys.path.insert(0, str(TOP / "tests"))

import sources

#: the calls that etrace records, as strace names them
CALLS = ",".join(f"?{name}" for name in syscalls.load().of_strace("always"))
LOOP = "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done"


def ways(scratch: Path, *, with_bear: bool = False) -> dict[str, list[str]]:
    """Return what to put before a command: nothing, strace, etrace run, its C programs, Bear.

    BPF is left out where it is refused, and Bear where it is not installed.
    """
    log = ["-o", f"{scratch}/strace.out"]
    run = [str(PROGRAMS / "etrace"), "run", "-q", "-o", str(scratch)]
    alone = [str(ptrace.program()), "-o", f"{scratch}/.nfsdb"]
    library = [str(ptrace.program(ptrace.PRELOAD_PROGRAM)), "-o", f"{scratch}/.nfsdb"]
    found = {
        "native": [],
        "strace -f": ["strace", "-f", *log],
        "strace --seccomp-bpf": ["strace", "-f", "--seccomp-bpf", *log, "-e", f"trace={CALLS}"],
        "etrace run --backend ptrace": [*run, "--backend", "ptrace", "--"],
        "its C tracer alone": [*alone, "--"],
        "etrace-preload": [*library, "--"],
        "etrace run --backend strace": [*run, "--backend", "strace", "--"],
    }
    if bpf.BpfBackend().probe().works:
        found["etrace-bpf"] = [str(ptrace.program(bpf.PROGRAM)), "-o", f"{scratch}/.nfsdb", "--"]
        found["etrace run --backend bpf"] = [*run, "--backend", "bpf", "--"]
    if with_bear and shutil.which("bear") is not None:
        found["Bear"] = ["bear", "--output", f"{scratch}/compile_commands.json", "--"]
    return found


def compare(
    title: str,
    command: Sequence[str],
    scratch: Path,
    rounds: int,
    tree: Path | None = None,
    *,
    is_built: bool = True,
    with_bear: bool = False,
) -> str:
    """Return the table of one workload in `tree`; what is built is cleaned before each run."""

    def clean() -> None:
        if tree is not None and is_built:
            subprocess.run(["make", "clean"], cwd=tree, check=True, capture_output=True)

    candidates = [
        Candidate(name, [*way, *command], tree, clean)
        for name, way in ways(scratch, with_bear=with_bear).items()
    ]
    return paired.table(title, paired.compare(candidates, rounds))


def stops_of(title: str, command: Sequence[str], scratch: Path, tree: Path) -> str:
    """Return stops and events of one run of the C tracer."""
    stats = scratch / "stats"
    tracer = [str(ptrace.program()), "-o", f"{scratch}/.nfsdb", "--stats", str(stats), "--"]
    subprocess.run([*tracer, *command], cwd=tree, check=True, capture_output=True)
    counts = ptrace.read_stats(stats)
    stops, events = counts["stops"], counts["events"]
    return f"{title}: {stops:,} stops for {events:,} events, {stops / events:.2f} for each\n"


def _hashing(scratch: Path, command: Sequence[str], tree: Path) -> float:
    """Return the CPU seconds of the process that hashes, for one capture of a build."""
    folder = os.open(scratch, os.O_PATH | os.O_DIRECTORY)
    options = Options(scratch / ".nfsdb", scratch / ".nfsdb.stats", folder=folder, hash=True)
    helper = Helper(options)
    made = ["make", "-s", "-C", str(tree), *command[1:]]
    outcome = ptrace.PtraceBackend().run(made, options, None)
    helper.end()
    os.close(folder)
    if outcome.status:
        sys.exit(f"bench: {made} ended with {outcome.status}")
    return helper.cpu_s


def hashes_of(title: str, command: Sequence[str], scratch: Path, rounds: int, tree: Path) -> str:
    """Return the CPU time of hashing by that of the build: the first capture, and the next one."""

    def clean() -> None:
        subprocess.run(["make", "clean"], cwd=tree, check=True, capture_output=True)

    shares: list[tuple[float, float]] = []
    for _ in range(rounds):
        build = paired.once(Candidate(title, command, tree, clean)).cpu
        with tempfile.TemporaryDirectory(dir=scratch) as where:
            seconds = []
            for _ in range(2):
                clean()
                seconds.append(_hashing(Path(where), command, tree))
            records = hash_records.read((Path(where) / f".nfsdb{hash_records.SUFFIX}").read_bytes())
        shares.append((seconds[0] / build, seconds[1] / build))
    sizes = {found.inode: found.inode.size for _, found in records if found.sha256 and found.inode}
    first, later = (statistics.median(column) for column in zip(*shares, strict=True))
    return (
        f"{title}: --hash takes {first:.1%} of the build's CPU time, {later:.1%} in the same"
        f" directory again ({len(sizes):,} files of {sum(sizes.values()) / 1e6:.0f} MB)\n"
    )


def main(rounds: int = 7) -> None:
    """Print the tables of capture."""
    if shutil.which("strace") is None:
        sys.exit("bench: strace is missing: apt-get install strace")
    with tempfile.TemporaryDirectory(prefix="etrace-bench-") as directory:
        scratch = Path(directory)
        build = ["make", "-j2", "linux"]
        lua = sources.fetch("lua5.4", scratch / "src")
        print(compare("Lua, make -j2 linux", build, scratch, rounds, lua, with_bear=True))
        print(hashes_of("Lua, make -j2 linux", build, scratch, rounds, lua))
        bc = sources.fetch("bc", scratch / "src")
        print(compare("bc, ./configure", ["./configure"], scratch, rounds, bc, is_built=False))
        print(stops_of("bc, ./configure", ["./configure"], scratch, bc))
        loop = ["sh", "-c", LOOP]
        print(compare("400 x /bin/true by sh", loop, scratch, rounds, with_bear=True))
        open_close = [str(compiled("openclose")), "20000"]
        print(compare("20,000 x open + close", open_close, scratch, rounds))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
