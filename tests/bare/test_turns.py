# SPDX-License-Identifier: Apache-2.0
"""A second try is alone: others have ended by then, or wait for the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import trying
from bare.turns import Turns


def test_who_asks_to_be_alone_waits_for_the_others_and_keeps_new_ones_away() -> None:
    turns, happened = Turns(), []
    is_running, may_end, is_alone, may_go_on = Event(), Event(), Event(), Event()

    def other() -> None:
        with turns.beside():
            is_running.set()
            may_end.wait(trying.LIMIT_S)
            happened.append("other ends")

    def second_try() -> None:
        with turns.beside():
            is_running.wait(trying.LIMIT_S)
            may_end.set()
            with turns.alone():
                happened.append("alone")
                is_alone.set()
                may_go_on.wait(trying.LIMIT_S)
                happened.append("no longer alone")

    def late() -> None:
        is_alone.wait(trying.LIMIT_S)
        may_go_on.set()
        with turns.beside():
            happened.append("late")

    with ThreadPoolExecutor() as pool:
        ended = [pool.submit(task) for task in (other, second_try, late)]
        for future in ended:
            future.result(trying.LIMIT_S)
    assert happened == ["other ends", "alone", "no longer alone", "late"]


def test_all_may_ask_to_be_alone() -> None:
    turns, all_run, inside = Turns(), Barrier(3), []

    def second_try(name: str) -> None:
        with turns.beside():
            all_run.wait(trying.LIMIT_S)
            with turns.alone():
                inside.append((name, "begins"))
                inside.append((name, "ends"))

    with ThreadPoolExecutor() as pool:
        for future in [pool.submit(second_try, name) for name in "abc"]:
            future.result(trying.LIMIT_S)
    assert [moment for _, moment in inside] == ["begins", "ends"] * 3
    assert all(inside[i][0] == inside[i + 1][0] for i in (0, 2, 4))
