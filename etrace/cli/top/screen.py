# SPDX-License-Identifier: Apache-2.0
"""`etrace top` on a terminal, by curses(3): draws, and does what the keys say."""

from __future__ import annotations

import curses
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from etrace.capture.files import is_being_written
from etrace.cli.top import rows
from etrace.cli.top.rows import Cpu, Look, Row
from etrace.cli.top.running import Follower, Running

REFRESH_MS = 500
RATE_S = 5.0  #: programs finished a second are those of the last five
KEYS = "q leave  f failures  / search  arrows scroll"
ESCAPE, ENTER, BACKSPACE = "\x1b", ("\n", "\r"), ("\x7f", "\b")


@dataclass(slots=True)
class View:
    """The state of the screen."""

    trace: Path
    running: Running = field(default_factory=Running)
    search: str = ""
    is_typing: bool = False
    shows_failures: bool = False
    first: int = 0  #: row at the top
    _cpu: Cpu = field(default_factory=Cpu)
    _finished: list[tuple[float, int]] = field(default_factory=list)
    _writing: bool = True

    def read(self, follower: Follower) -> None:
        """Take what is new."""
        self._writing = self.trace.exists() and is_being_written(self.trace)
        before, now = self.running.now_ns, time.monotonic()
        self.running.read(follower.lines())
        if self.running.now_ns == before and self._writing and self._finished:
            self.running.wait(int((now - self._finished[-1][0]) * 1e9))
        self._finished = [each for each in self._finished if now - each[0] < RATE_S]
        self._finished.append((now, self.running.n_finished))

    def _per_second(self) -> float:
        (began, before), (ended, after) = self._finished[0], self._finished[-1]
        return (after - before) / (ended - began) if ended > began else 0.0

    def page(self, height: int, width: int) -> list[Row]:
        """Return the rows of a screen."""
        pids = [each.pid for each in self.running.processes.values()]
        shares = self._cpu.look(pids if self._writing else ())
        body = (
            rows.failures(self.running, self.search)
            if self.shows_failures
            else rows.processes(self.running, shares, self.search)
        )
        head = rows.head(self.running, self._per_second(), self._writing)
        names = ("PID", "EXIT", "AGO") if self.shows_failures else ("PID", "CPU", "TIME")
        head.append(Row(f"{names[0]:>7} {names[1]:>5} {names[2]:>7}  COMMAND", Look.HEAD))
        room = max(0, height - len(head) - 1)
        self.first = max(0, min(self.first, len(body) - room))
        shown = body[self.first : self.first + room]
        shown += [Row("")] * (room - len(shown))
        return rows.fitted([*head, *shown, self._foot()], width)[:height]

    def _foot(self) -> Row:
        if self.is_typing or self.search:
            return Row(f"/{self.search}" + ("_" if self.is_typing else "  (Esc: all)"), Look.HEAD)
        return Row(KEYS, Look.HEAD)

    def press(self, key: str) -> bool:
        """Do what a key says; False to leave."""
        if self.is_typing:
            self._type(key)
            return True
        actions: dict[str, Callable[[], None]] = {
            "f": self._turn, "/": self._begin_typing, ESCAPE: self._forget,
            "KEY_DOWN": lambda: self._scroll(1), "KEY_UP": lambda: self._scroll(-1),
            "KEY_NPAGE": lambda: self._scroll(20), "KEY_PPAGE": lambda: self._scroll(-20),
            "j": lambda: self._scroll(1), "k": lambda: self._scroll(-1),
        }  # fmt: skip
        actions.get(key, lambda: None)()
        return key != "q"

    def _type(self, key: str) -> None:
        if key in ENTER:
            self.is_typing = False
        elif key == ESCAPE:
            self._forget()
        elif key in BACKSPACE or key == "KEY_BACKSPACE":
            self.search = self.search[:-1]
        elif len(key) == 1 and key.isprintable():
            self.search += key

    def _turn(self) -> None:
        self.shows_failures, self.first = not self.shows_failures, 0

    def _begin_typing(self) -> None:
        self.is_typing, self.search, self.first = True, "", 0

    def _forget(self) -> None:
        self.is_typing, self.search = False, ""

    def _scroll(self, by: int) -> None:
        self.first = max(0, self.first + by)


def _attributes() -> dict[Look, int]:
    red = 0
    if curses.has_colors():
        curses.start_color()
        curses.use_default_colors()
        curses.init_pair(1, curses.COLOR_RED, -1)
        red = curses.color_pair(1)
    return {Look.PLAIN: 0, Look.HEAD: curses.A_BOLD, Look.WRONG: curses.A_BOLD | red}


def _draw(screen: curses.window, view: View, looks: dict[Look, int]) -> None:
    height, width = screen.getmaxyx()
    screen.erase()
    for at, row in enumerate(view.page(height, width)):
        # the last column of the last row cannot be written without scrolling
        screen.addnstr(at, 0, row.text, width - (at == height - 1), looks[row.look])
    screen.refresh()


def show(trace: Path, follower: Follower) -> None:
    """Show a trace until `q` or Ctrl-C; the build goes on."""

    def loop(screen: curses.window) -> None:
        view, looks = View(trace), _attributes()
        curses.curs_set(0)
        screen.timeout(REFRESH_MS)
        goes_on = True
        while goes_on:
            view.read(follower)
            _draw(screen, view, looks)
            try:
                key = screen.getkey()
            except curses.error:  # none within REFRESH_MS
                continue
            goes_on = view.press(key)

    curses.set_escdelay(25)
    curses.wrapper(loop)
