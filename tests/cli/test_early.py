# SPDX-License-Identifier: Apache-2.0
"""The first moments of each program: an interrupt is quiet, missing streams do no harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
#: an interrupt comes while the module of this name is looked for
SITE = """\
import os, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if seen := os.environ.get("MODULES_SEEN"):
            with open(seen, "a") as stream:
                stream.write(name + "\\n")
        if name == os.environ.get("INTERRUPT_AT"):
            os.kill(os.getpid(), 2)
sys.meta_path.insert(0, Interrupt())
"""
PROGRAMS = (
    ("etrace", "run", "-q", "-o", "out", "--", "true"),
    ("etrace", "run", "--env", "--quie", "-o", "out", "--", "true"),
    ("etrace", "--help"),
    ("etrace", "doctor"),
    ("etrace_parser", "t.nfsdb", "t.json"),
    ("cas", "--dbdir", "t.json", "execs"),
    ("cas", "--help"),
)
N_MODULES = 10
FIRST = "etrace.cli.ending"  #: what is imported before it takes half a millisecond


def call(where: Path, command: tuple[str, ...], **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(where / "site"), **more}
    return subprocess.run(
        [sys.executable, str(BIN / "etrace_start"), *command],  # not isolated: it takes SITE
        cwd=where, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SITE)
    call(tmp_path, ("etrace", "run", "-q", "--", "sh", "-c", "/bin/true"))
    (tmp_path / ".nfsdb").rename(tmp_path / "t.nfsdb")
    call(tmp_path, ("etrace_parser", "t.nfsdb", "t.json"))
    call(tmp_path, ("cas", "--dbdir", "t.json", "execs"))  # makes the image
    return tmp_path


def modules_of(folder: Path, command: tuple[str, ...]) -> list[str]:
    """Return modules that a program looks for, evenly spread over its start."""
    seen = folder / "seen"
    call(folder, command, MODULES_SEEN=str(seen))
    names = list(dict.fromkeys(seen.read_text().split()))
    names = names[names.index(FIRST) :]
    step = max(1, len(names) // N_MODULES)
    return names[::step]


@pytest.mark.parametrize("command", PROGRAMS, ids=" ".join)
def test_an_interrupt_in_the_start_is_quiet(folder: Path, command: tuple[str, ...]) -> None:
    for name in modules_of(folder, command):
        done = call(folder, command, INTERRUPT_AT=name)
        assert (name, done.returncode in (-signal.SIGINT, 128 + signal.SIGINT)) == (name, True)
        assert (name, done.stderr) in {(name, ""), (name, f"{command[0]}: interrupted\n")}


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_messages_go_into_no_file_where_a_stream_is_closed(folder: Path, closed: str) -> None:
    bad = folder / "bad.nfsdb"
    bad.write_bytes((folder / "t.nfsdb").read_bytes() + b"no line of a trace\n")
    call(folder, ("etrace_parser", "bad.nfsdb", "good.json"))
    for command in ("etrace_parser --stats bad.nfsdb x.json", "cas --dbdir x.json execs -o y"):
        shell = f"{BIN}/{command} {closed}"
        assert subprocess.run(["sh", "-c", shell], cwd=folder, check=False).returncode in {0, 2}
    assert (folder / "x.json").read_bytes() == (folder / "good.json").read_bytes()
    assert (folder / "y").read_text() == call(folder, ("cas", "--dbdir", "x.json", "execs")).stdout


@pytest.mark.parametrize(
    "command", [("etrace", "summary", "t.json"), ("cas", "--dbdir", "t.json", "execs")]
)
def test_a_closed_standard_output_is_no_crash(folder: Path, command: tuple[str, ...]) -> None:
    call(folder, ("etrace_parser", "t.nfsdb", "t.json"))
    shell = f"{BIN}/{' '.join(command)} >&-"
    done = subprocess.run(["sh", "-c", shell], cwd=folder, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


IN_A_CALLBACK = """
import os, sys, time, weakref
sys.argv[0] = "cas"
from etrace.cli import ending
class Thing: pass
def body():
    ending.stop_on_sigterm()
    thing = Thing()
    kept = weakref.ref(thing, lambda _: os.kill(os.getpid(), {number}))
    del thing
    time.sleep(60)
sys.exit(ending.guarded("cas", body))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_callback_is_not_lost(number: signal.Signals) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_CALLBACK.format(number=int(number))],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.returncode == 128 + number
    assert done.stderr == ("cas: interrupted\n" if number == signal.SIGINT else "")
