# SPDX-License-Identifier: Apache-2.0
"""A starved emulator is not a guest that hangs: one has no time, the other uses it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from vm import machine, patience
from vm.patience import OwnTime

STALL = "[   31.0] watchdog: BUG: soft lockup - CPU#1 stuck for 134s!\n"


def threads(proc: Path, pid: int, session: int, *waits_s: float) -> None:
    """Write what proc(5) has of a process whose threads waited so long."""
    folder = proc / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stat").write_text(f"{pid} (qemu (x) y) S 1 {session} {session} 0 -1\n")
    for i, wait_s in enumerate(waits_s):
        (folder / "task" / str(pid + i)).mkdir(parents=True, exist_ok=True)
        schedstat = folder / "task" / str(pid + i) / "schedstat"
        schedstat.write_text(f"123 {int(wait_s * 1e9)} 4\n")


def test_time_without_a_processor_does_not_count(tmp_path: Path) -> None:
    spent = OwnTime(10, tmp_path)
    threads(tmp_path, 11, 10, 5.0, 1.0)
    spent.advance(1.0)
    threads(tmp_path, 11, 10, 8.0, 2.0)
    spent.advance(4.0)
    assert (spent.own_s, spent.waited_s) == (2.0, 3.0)
    assert str(spent) == "2 s of its own time, and 3 s more in which it waited for a processor"


def test_an_idle_guest_uses_its_time(tmp_path: Path) -> None:
    spent = OwnTime(10, tmp_path)
    threads(tmp_path, 11, 10, 5.0)
    spent.advance(1.0)
    spent.advance(4.0)
    assert (spent.own_s, spent.waited_s) == (5.0, 0.0)


def test_other_sessions_and_threads_that_ended_do_not_count(tmp_path: Path) -> None:
    spent = OwnTime(10, tmp_path)
    threads(tmp_path, 11, 10, 5.0)
    threads(tmp_path, 12, 99, 1.0)
    spent.advance(1.0)
    threads(tmp_path, 12, 99, 3.0)
    (tmp_path / "11" / "task" / "11" / "schedstat").unlink()
    spent.advance(2.0)
    assert (spent.own_s, spent.waited_s) == (3.0, 0.0)


def test_who_does_not_end_is_warned_before_its_time_is_over() -> None:
    warned: list[bool] = []
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as sleeper:
        spent, ended = patience.wait(sleeper, 1.5, 1.0, lambda: warned.append(True))
        sleeper.kill()
    assert (ended, warned) == (False, [True])
    assert spent.own_s >= 1.5


def test_whatever_gets_done_gives_it_the_whole_time_again() -> None:
    warned: list[bool] = []
    done = iter([0, 1, 2])
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as sleeper:
        spent, ended = patience.wait(
            sleeper, 1.0, 0.2, lambda: warned.append(True), lambda: next(done, 2)
        )
        sleeper.kill()
    assert (ended, warned) == (False, [True])
    assert 2.0 <= spent.own_s < 10


def test_who_ends_is_not_warned() -> None:
    with subprocess.Popen(["true"], start_new_session=True) as process:
        _, ended = patience.wait(process, 900, 60, lambda: None)
    assert ended


def test_stalls_of_a_starved_guest_are_called_so() -> None:
    starved = OwnTime(1, own_s=40, waited_s=200)
    assert machine.starvation(starved, STALL) == (
        "the emulator was starved: it had 40 s of its own time, and 200 s more in which it waited "
        "for a processor. The guest's 'soft lockup' may come of that and not of the module: run "
        "the test again when the machine has less to do"
    )
    assert machine.starvation(OwnTime(1, own_s=200, waited_s=5), STALL) == ""
    assert machine.starvation(starved, "[    1.0] BUG: KASAN: use-after-free\n") == ""
