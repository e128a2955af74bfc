# SPDX-License-Identifier: Apache-2.0
"""What capture costs: a build, a configure script, programs and opens, beside strace."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import paired
from paired import Candidate

from etrace.capture import preload, ptrace

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import sources  # noqa: E402  found through the line above

#: the calls that etrace records, as strace names them
CALLS = (
    "execve,execveat,fork,vfork,clone,clone3,open,openat,openat2,creat,close,close_range,pipe,pipe2,"
    "dup,dup2,dup3,fcntl,rename,renameat,renameat2,link,linkat,symlink,symlinkat"
)
LOOP = "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done"


def etrace() -> Path:
    """Path of the `etrace` command of this environment."""
    return Path(sys.executable).parent / "etrace"


def ways(command: Sequence[str], scratch: Path) -> list[list[str]]:
    """Return `command` natively, under strace, etrace run, and its C programs alone."""
    plain = ["strace", "-f", "-o", f"{scratch}/strace.out"]
    strace = [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-o",
        f"{scratch}/strace.out",
        "-e",
        f"trace={CALLS}",
    ]
    traced = [str(etrace()), "run", "-q", "-o", str(scratch), "--"]
    alone = [str(ptrace.program()), "-o", f"{scratch}/.nfsdb", "--"]
    fast = [*alone[:-1], "--fast", "--"]
    library = [str(ptrace.program(preload.PROGRAM)), "-o", f"{scratch}/.nfsdb", "--"]
    return [[*way, *command] for way in ([], plain, strace, traced, alone, fast, library)]


def compare(
    title: str,
    command: Sequence[str],
    scratch: Path,
    rounds: int,
    tree: Path | None = None,
    *,
    is_built: bool = True,
) -> str:
    """Return the table of one workload in `tree`; what is built is cleaned before each run."""

    def clean() -> None:
        if tree is not None and is_built:
            subprocess.run(["make", "clean"], cwd=tree, check=True, capture_output=True)

    names = (
        *("native", "strace -f", "strace --seccomp-bpf", "etrace run", "its C tracer alone"),
        *("its C tracer --fast", "etrace-preload"),
    )
    commands = ways(command, scratch)
    candidates = [Candidate(n, c, tree, clean) for n, c in zip(names, commands, strict=True)]
    return paired.table(title, paired.compare(candidates, rounds))


def compiled(name: str, scratch: Path) -> str:
    """Compile a program of bench/programs; returns its path."""
    out = scratch / name
    source = HERE / "programs" / f"{name}.c"
    subprocess.run(["cc", "-O2", "-o", out, source], check=True)
    return str(out)


def stops_of(title: str, command: Sequence[str], scratch: Path, tree: Path) -> str:
    """Return stops and events of one run of the C tracer."""
    stats = scratch / "stats"
    tracer = [str(ptrace.program()), "-o", f"{scratch}/.nfsdb", "--stats", str(stats), "--"]
    subprocess.run([*tracer, *command], cwd=tree, check=True, capture_output=True)
    told = ptrace.read_stats(stats)
    stops, events = told["stops"], told["events"]
    return f"{title}: {stops:,} stops for {events:,} events, {stops / events:.2f} for each\n"


def main(rounds: int = 7) -> None:
    """Print the tables of capture."""
    if shutil.which("strace") is None:
        sys.exit("bench: strace is missing: apt-get install strace")
    with tempfile.TemporaryDirectory(prefix="etrace-bench-") as directory:
        scratch = Path(directory)
        lua = sources.fetch("lua5.4", scratch / "src")
        print(compare("Lua, make -j2 linux", ["make", "-j2", "linux"], scratch, rounds, lua))
        bc = sources.fetch("bc", scratch / "src")
        print(compare("bc, ./configure", ["./configure"], scratch, rounds, bc, is_built=False))
        print(stops_of("bc, ./configure", ["./configure"], scratch, bc))
        print(compare("400 x /bin/true by sh", ["sh", "-c", LOOP], scratch, rounds))
        fork_exec = [compiled("forkexec", scratch), "500"]
        print(compare("500 x fork + exec of /bin/true", fork_exec, scratch, rounds))
        open_close = [compiled("openclose", scratch), "20000"]
        print(compare("20,000 x open + close", open_close, scratch, rounds))


if __name__ == "__main__":
    main()
