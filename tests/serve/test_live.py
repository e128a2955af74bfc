# SPDX-License-Identifier: Apache-2.0
"""`etrace serve --live` follows a real build while it runs, in a browser."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from browser import READY, Page, browser
from serve.asking import PROGRAM

from etrace.cli.top.running import Follower, Running, find
from etrace.errors import EtraceError

pytestmark = pytest.mark.xdist_group("browser")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
R = "etraceReport"
#: two compilations, each of which waits until the test says so
MAKEFILE = """\
all: a.o b.o
%.o: %.c
\tread go < {fifo}; gcc -c $<
"""
WAIT_S = 60
LABELS = f"[...{R}.data.label].map(i => {R}.data.text(i))"


@contextmanager
def started(*words: str, cwd: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command of etrace; end it when it is still there."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words], cwd=cwd, env=ENVIRONMENT | variables, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=WAIT_S)


@contextmanager
def following(trace: Path) -> Iterator[None]:
    """Wait until a compilation waits for the test."""
    follower, running = Follower(trace), Running()
    deadline = time.monotonic() + WAIT_S
    try:
        while not any(b"read go" in b" ".join(p.argv) for p in running.processes.values()):
            assert time.monotonic() < deadline
            running.read(follower.lines())
            time.sleep(0.02)
        yield
    finally:
        follower.close()


@contextmanager
def left_empty(folder: Path) -> Iterator[Path]:
    """Give a folder for files that are private and go at the end."""
    folder.mkdir()
    yield folder
    assert list(folder.iterdir()) == []


def being_written(folder: Path) -> Path:
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return find(folder)
        except EtraceError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def until(page: Page, condition: str) -> None:
    """Wait until a condition of the page holds; it asks the server by itself."""
    page.run(
        "new Promise(done => { const look = () => { if (" + condition + ") done();"
        " else setTimeout(look, 20); }; look(); })"
    )


def let_go(fifo: Path) -> None:
    stream: IO[str]
    with fifo.open("w") as stream:
        stream.write("go\n")


def test_the_page_follows_a_build_that_runs(tmp_path: Path) -> None:
    tree, trace, fifo = tmp_path / "tree", tmp_path / "trace", tmp_path / "fifo"
    tree.mkdir()
    trace.mkdir()
    os.mkfifo(fifo)
    (tree / "Makefile").write_text(MAKEFILE.format(fifo=fifo))
    for name in "ab":
        (tree / f"{name}.c").write_text(f"int {name};\n")
    with (
        started("run", "-o", str(trace), "--", "make", cwd=tree) as build,
        following(being_written(trace)),
        left_empty(tmp_path / "private") as private,
        started(
            "serve", "--port", "0", "--live", str(trace), cwd=tmp_path, TMPDIR=str(private)
        ) as server,
        browser() as page,
    ):
        assert server.stdout is not None
        address = [server.stdout.readline().strip() for _ in range(2)][1]
        assert "/report?build=trace#token=" in address
        page.call("Page.navigate", url=address)
        page.run(READY)
        assert "follows it" in page.run("document.getElementById('live').textContent")
        until(page, f"{LABELS}.some(t => t.startsWith('make'))")
        assert not any("gcc a.c" in label for label in page.run(LABELS))
        page.run(
            "(box => { box.value = 'status'; box.dispatchEvent(new Event('change')); })"
            "(document.querySelector('#timeline select'))"
        )
        let_go(fifo)
        until(page, f"{LABELS}.some(t => t === 'cc1 a.c')")
        assert page.run("document.querySelector('#timeline select').value") == "status"
        let_go(fifo)
        assert build.wait(timeout=WAIT_S) == 0
        until(page, f"{R}.data.isRunning === false")
        assert {"cc1 a.c", "cc1 b.c"} <= set(page.run(LABELS))
        assert page.run("document.getElementById('live').textContent") == ""
        assert page.messages == []


def test_nothing_that_runs_is_an_error_with_a_hint(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "serve", "--port", "0", "--live", str(tmp_path)],
        env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=WAIT_S,
    )  # fmt: skip
    assert "nothing is being traced here" in done.stderr
    assert "etrace run" in done.stderr
    assert done.returncode == 1
