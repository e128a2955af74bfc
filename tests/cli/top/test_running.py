# SPDX-License-Identifier: Apache-2.0
"""Event lines of a build that goes on -> what runs, what failed, and the rows of `etrace top`."""

from __future__ import annotations

from etrace.cli.top import rows
from etrace.cli.top.rows import Look, Row
from etrace.cli.top.running import Failure, Running

MAKE, GCC, CC1 = 1 << 22 | 100, 2 << 22 | 101, 3 << 22 | 102


def started(upid: int, at: int, path: str, *argv: str) -> list[str]:
    names = [f"{upid},0,{at},0!New_proc|argsize=9", f"{upid},0,{at},0!PI|{path}"]
    return names + [f"{upid},0,{at},0!A[{n}]{word}" for n, word in enumerate(argv)]


def forked(upid: int, at: int, child: int) -> list[str]:
    return [f"{upid},0,{at},0!SchedFork|pid={child}"]


BUILD = [
    "INITCWD=/src",
    *started(MAKE, 10, "/usr/bin/make", "make", "-j2", "all"),
    *forked(MAKE, 11, GCC),
    *started(GCC, 12, "/usr/bin/gcc", "gcc", "-c", "lvm.c"),
    f"{GCC},0,12,0!Open|fnamesize=1,forigsize=1,flags=0,mode=0,fd=3",
    *forked(GCC, 13, CC1),
]


def read(*lines: str) -> Running:
    running = Running()
    running.read(line.encode() for line in lines)
    return running


def tree(running: Running) -> list[tuple[int, str, int]]:
    return [(depth, running.label(each), each.pid) for depth, each in running.tree()]


def test_the_tree_has_what_runs() -> None:
    running = read(*BUILD)
    assert tree(running) == [(0, "make all", 100), (1, "gcc lvm.c", 101), (2, "gcc (forked)", 102)]
    running.read([line.encode() for line in started(CC1, 14, "/usr/lib/cc1", "cc1", "lvm.c")])
    assert tree(running)[2] == (2, "cc1 lvm.c", 102)


def test_what_ended_is_counted_and_its_children_stay() -> None:
    running = read(*BUILD, f"{GCC},0,15,0!Exit|status=1")
    assert tree(running) == [(0, "make all", 100), (0, "process (forked)", 102)]
    assert (running.n_finished, running.n_failed) == (1, 1)
    assert list(running.failures) == [Failure("gcc lvm.c", 101, 1, 15 * 10**9)]


def test_a_fork_that_ran_nothing_is_no_program() -> None:
    running = read(*BUILD, f"{CC1},0,15,0!Exit|status=1")
    assert (running.n_finished, running.n_failed) == (0, 0)


def test_lines_of_strangers_and_halves_are_passed_over() -> None:
    odd = ("", "x", "1,2,3!Exit|status=0", f"{GCC},0,1,0!Exit|status=0", "9,0,1,0!Nonsense|",
           f"{MAKE},0,1,0!SchedFork|nothing", "-1,0,1,0!New_proc|")  # fmt: skip
    assert tree(read(*odd)) == []


def test_forks_that_cannot_be_keep_a_tree() -> None:
    circle = [*forked(MAKE, 1, MAKE), *forked(MAKE, 1, GCC), *forked(GCC, 1, MAKE)]
    twice = [*forked(MAKE, 1, CC1), *forked(GCC, 1, CC1), *forked(CC1, 1, GCC)]
    running = read(*circle, *twice, f"{CC1},0,2,0!Exit|status=0", f"{GCC},0,2,0!Exit|status=0")
    assert list(running.processes) == [MAKE]
    assert sum(1 for _ in running.tree()) <= 1


def test_rows_fit_and_hold_no_control_characters() -> None:
    running = read(*BUILD, *started(CC1, 14, "/usr/lib/cc1", "cc1", "l\x1b[31m.c"))
    shown = rows.fitted(rows.processes(running, {101: 0.255}, ""), 60)
    assert [row.text for row in shown] == [
        "    100          4.0s  make all",
        "    101   26%    2.0s    gcc lvm.c",
        "    102          0.0s      cc1 l\\x1b[31m.c",
    ]
    assert rows.fitted(shown, 12)[0] == Row("    100     ")


def test_a_search_shows_the_names_that_hold_it() -> None:
    assert [row.text[-9:] for row in rows.processes(read(*BUILD), {}, "lvm")] == ["gcc lvm.c"]


def test_the_head_says_failures() -> None:
    running = read(*BUILD, f"{GCC},0,75,0!Exit|status=2")
    assert rows.head(running, 1.6, True) == [
        Row("65.0s  1 running", Look.HEAD),
        Row("1 finished  2/s  1 failed", Look.WRONG),
    ]
    assert rows.failures(running, "") == [Row("    101     2   -0.0s  gcc lvm.c", Look.WRONG)]


def test_durations() -> None:
    shown = [rows.duration(int(s * 1e9)) for s in (0, 99.94, 100, 5999, 6000, 360000)]
    assert shown == ["0.0s", "99.9s", "1m40s", "99m59s", "1h40m", "100h00m"]
