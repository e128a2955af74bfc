# SPDX-License-Identifier: Apache-2.0
"""What the fuzzers of crafted inputs share: limits of time, the command line, the end of a run."""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

#: an answer takes milliseconds; on a loaded machine that much is still a hang
ANSWER_SECONDS = 60
#: makes one input and lets everything read it; whether it was accepted
Attempt = Callable[[Random], bool]


class Hung(BaseException):
    """No answer in time; no Exception, as what is tested may catch those."""


@contextlib.contextmanager
def limited(question: str) -> Iterator[None]:
    """End what takes too long."""

    def end(_number: int, _frame: object) -> None:
        raise Hung(f"no answer in {ANSWER_SECONDS} s: {question}")

    before = signal.signal(signal.SIGALRM, end)
    faulthandler.dump_traceback_later(2 * ANSWER_SECONDS, exit=True)  # in C no signal is handled
    signal.alarm(ANSWER_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def run(kind: str, attempt: Attempt, seed: int, runs: int, seconds: float) -> None:
    """Make attempts, as many as there is time for, and print how many were accepted."""
    n_accepted = 0
    end = time.monotonic() + seconds
    for number in range(runs):
        if time.monotonic() > end:
            runs = number
            break
        n_accepted += attempt(Random(seed + number))
    print(f"{kind}: {runs} crafted from seed {seed}, {n_accepted} accepted")


def fuzz(about: str | None, kind: str, begin: Callable[[Path], Attempt], kept: str) -> int:
    """Run as a program; `kept` is where `begin(directory)` lets the last input lie."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--runs", type=int, default=10**9, help="inputs")
    parser.add_argument("--seconds", type=float, default=60, help="longest time")
    parser.add_argument("--seed", type=int, default=0, help="number of the first input")
    parser.add_argument("--build", type=Path, default=Path("build/fuzz", kind), help="directory")
    args = parser.parse_args()
    faulthandler.enable()
    folder = args.build.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        run(kind, begin(folder), args.seed, args.runs, args.seconds)
    except (Exception, Hung):  # noqa: BLE001  any exception is a finding
        traceback.print_exc()
        print(f"fuzz: see {folder / kept}", file=sys.stderr)
        return 1
    return 0
