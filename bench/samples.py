# SPDX-License-Identifier: Apache-2.0
"""What the parts of the benchmark measure: a Lua build's trace, repeated, and its databases."""

from __future__ import annotations

import lzma
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
CACHE = TOP / "build" / "bench"
PROGRAMS = Path(sys.executable).parent
CAS = str(PROGRAMS / "cas")
N_COPIES = 200
COPY_SHIFT = 32  # of upids
MEGA = 1e6


def compiled(name: str) -> Path:
    """Return a program of bench/programs, compiled."""
    CACHE.mkdir(parents=True, exist_ok=True)
    program = CACHE / name
    source = TOP / "bench" / "programs" / f"{name}.c"
    subprocess.run(["cc", "-O2", "-o", program, source], check=True)
    return program


def repeating(n_copies: int) -> str:
    """Return the shell command that writes the sample so many times, as one build."""
    program, sample = compiled("repeat_trace"), CACHE / "lua.nfsdb"
    golden = TOP / "tests" / "golden" / "lua.nfsdb.xz"
    sample.write_bytes(lzma.decompress(golden.read_bytes()))
    return f"{program} {n_copies} <{sample}"


def scaled(n_copies: int) -> Path:
    """Return the sample repeated, made when it is not there yet."""
    target = CACHE / f"lua-{n_copies}.nfsdb"
    if not target.exists():
        pending = target.with_suffix(".tmp")
        subprocess.run(["sh", "-c", f"{repeating(n_copies)} >{pending}"], check=True)
        pending.rename(target)
    return target


def database(name: str, n_copies: int = N_COPIES, *options: str) -> Path:
    """Return the directory of the repeated sample's database, made when it is not there yet."""
    directory = CACHE / name
    if not (directory / ".nfsdb.img").exists():
        directory.mkdir(parents=True, exist_ok=True)
        parse = f"{CAS} parse -q --db {directory} {' '.join(options)} -"
        subprocess.run(["sh", "-c", f"{repeating(n_copies)} | {parse}"], check=True)
    return directory


def distinct(n_copies: int) -> Path:
    """Return a database of builds in directories of their own, made when it is not there yet."""
    directory = CACHE / f"distinct-{n_copies}"
    if not (directory / ".nfsdb.img").exists():
        directory.mkdir(parents=True, exist_ok=True)
        trace = directory / ".nfsdb"
        write_distinct(n_copies, trace)
        cas(directory, "parse", "-q", str(trace))
        cas(directory, "pp", "--no-json")
        trace.unlink()
    return directory


def write_distinct(n_copies: int, target: Path) -> None:
    """Write the trace of the repeated sample with another directory for each copy."""
    with scaled(n_copies).open("rb") as lines, target.open("wb") as stream:
        stream.write(next(lines))
        for line in lines:
            copy = int(line.removeprefix(b"0: ").partition(b",")[0]) >> COPY_SHIFT
            stream.write(line.replace(b"lua-5.4.4", b"lua-%05d" % copy))


def cas(directory: Path, *words: str) -> None:
    """Run a command of `cas` on a database; CalledProcessError when it fails."""
    command = [CAS, *words, "--db", str(directory)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def verdict(name: str, value: float, limit: float, at_most: bool) -> str:
    """Say whether a figure keeps its promise."""
    kept = value <= limit if at_most else value >= limit
    bound = f"{'at most' if at_most else 'at least'} {limit}"
    return f"{'ok  ' if kept else 'MISS'} {name}: {value:.2f} ({bound})"
