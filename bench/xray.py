# SPDX-License-Identifier: Apache-2.0
"""XRay: `etrace xray account` against llvm-xray-19 and md5sum on a log of 134 MB made here.

The log is one buffer of one thread (llvm-xray fails on more than 16 of one thread), 16.8 million
function records. Ratios are to llvm-xray; memory is the peak less that of an empty command, and the
mapped file is part of it.
"""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from libetrace.xray import log as native_log
from paired import Candidate, compare, once, table

HERE = Path(__file__).parent
CACHE = HERE.parent / "build" / "bench" / "xray"
SOURCES = HERE.parent / "tests" / "data" / "xray" / "src"
N_ITERATIONS = 700_000
BUFFER_BYTES = 160 << 20
ROUNDS = 5
CLANG, LLVM_XRAY = "clang++-19", "llvm-xray-19"
#: what the figures are held to
MIN_SPEEDUP, MAX_BYTES_PER_RECORD, MIN_RECORDS_PER_SECOND = 10.0, 40.0, 50e6


def _make_log() -> tuple[Path, Path]:
    """Return the program and its log; made once."""
    program, log = CACHE / "big", CACHE / "big.xray"
    if log.exists():
        return program, log
    if shutil.which(CLANG) is None or shutil.which(LLVM_XRAY) is None:
        raise SystemExit("install clang-19, llvm-19 and libclang-rt-19-dev for this part")
    CACHE.mkdir(parents=True, exist_ok=True)
    control = CACHE / "ctl.o"
    subprocess.run([CLANG, "-O1", "-c", SOURCES / "ctl.cpp", "-o", control], check=True)
    flags = ["-O1", "-fxray-instrument", "-Wl,--wrap=main"]
    subprocess.run([CLANG, *flags, SOURCES / "big.cpp", control, "-o", program], check=True)
    env = os.environ | {
        "XRAY_OPTIONS": f"patch_premain=true xray_mode=xray-fdr xray_logfile_base={CACHE}/raw.",
        "XRAY_FDR_OPTIONS": (
            f"func_duration_threshold_us=0 buffer_size={BUFFER_BYTES} buffer_max=2"
        ),
    }
    subprocess.run([program, str(N_ITERATIONS)], env=env, check=True, stdout=subprocess.DEVNULL)
    (raw,) = CACHE.glob("raw.*")
    raw.rename(log)
    return program, log


def decode(log: Path) -> tuple[float, int]:
    """Return the CPU time of the bare decode to columns, and the number of records."""
    with log.open("rb") as stream:
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    for _ in data[::4096]:  # the file is in memory
        pass
    start = time.process_time()
    n_records = native_log.read(data).n_records
    return time.process_time() - start, n_records


def _decode_apart(log: Path) -> tuple[float, int]:
    """Run `decode` in a process of its own: a parent's memory counts in its children's peak."""
    command = [sys.executable, __file__, str(log)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, n_records = done.stdout.split()
    return float(seconds), int(n_records)


def main() -> None:
    """Print the figures."""
    program, log = _make_log()
    etrace = Path(sys.executable).parent / "etrace"
    figures = compare(
        [
            Candidate("llvm-xray-19 account", [LLVM_XRAY, "account", "-m", program, log]),
            Candidate("etrace xray account", [etrace, "xray", "account", "-m", program, log]),
            Candidate("md5sum", ["md5sum", log]),
        ],
        ROUNDS,
    )
    n_bytes = log.stat().st_size
    print(table(f"XRay: account of a log of {n_bytes / 1e6:.0f} MB (ratio to llvm-xray)", figures))
    seconds, n_records = min(_decode_apart(log) for _ in range(ROUNDS))
    empty = once(Candidate("empty", [etrace, "xray", "account", "--help"])).peak_bytes
    per_record = (figures[1].peak_bytes - empty) / n_records
    speedup = 1 / figures[1].cpu_ratio
    print(f"account: {speedup:.1f} times llvm-xray's speed (asked: {MIN_SPEEDUP:.0f})")
    print(f"memory: {per_record:.1f} bytes a record (asked: at most {MAX_BYTES_PER_RECORD:.0f})")
    print(
        f"decode to columns: {n_records / seconds / 1e6:.0f} million records/s "
        f"(asked: {MIN_RECORDS_PER_SECOND / 1e6:.0f}), "
        f"{seconds / figures[2].cpu:.2f} of md5sum's CPU time\n"
    )


if __name__ == "__main__":
    print(*decode(Path(sys.argv[1])))
