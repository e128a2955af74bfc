# SPDX-License-Identifier: Apache-2.0
"""A program of the build that forges records, or damages what the library and the collector share.

The collector may run as root and a program of the build as anybody: what a program writes may spoil
the trace, which then says so, and nothing else.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trace_lines
from backends import PRELOAD, Captured, capture, need_root, need_tool, public_libraries
from event_programs import compiled

from etrace.parse import responses

#: opens the memory; record() makes one, put() writes some into a chunk that is free
FORGE = """
import mmap, os, struct, sys, time
path = os.environ["ETRACE_PRELOAD"].partition(":")[0]
fd = os.open(path, os.O_RDWR)
memory = mmap.mmap(fd, os.fstat(fd).st_size)
def record(kind, pid, when=0, args=(), strings=(), part=0, flags=0):
    text = b"".join(struct.pack("<I", len(word)) + word for word in strings)
    size = 56 + (len(text) + 7) // 8 * 8
    args = [*args, 0, 0, 0, 0][:4]
    values = size, kind, part, pid, 0, when, 7, len(text), flags, 0, *args
    head = struct.pack("<IHHIIQIIII4i", *values)
    return head + text.ljust(size - len(head), bytes(1))
def put(*records):
    content = b"".join(records)
    at = next(i for i in range(255, 0, -1) if not memory[32 + 16 * i])
    memory[69632 + 8192 * at:69632 + 8192 * at + len(content)] = content
    memory[32 + 16 * at:48 + 16 * at] = struct.pack("<4I", 2, os.getpid(), len(content), 0)
    while memory[32 + 16 * at]:
        time.sleep(0.001)
"""
OPEN, INTENT, BORN, RESPONSE = 6, 3, 1, 21


def forge(folder: Path, script: str, *command: str, more: tuple[str, ...] = ()) -> Captured:
    """Capture a script that forges, and then the command."""
    work = folder / "work"
    work.mkdir()
    (work / "forge.py").write_text(FORGE + script)
    words = ["sh", "-c", '"$0" forge.py && "$@"', sys.executable, *(command or ("true",))]
    options = ["--stats", str(folder / "stats"), *more]
    return capture(words, work, options=options, env=dict(os.environ), backend=PRELOAD)


def warnings(folder: Path) -> str:
    said = json.loads((folder / "stats").read_text())["warnings"]
    return "\n".join(said)


def test_memory_that_a_program_shortens_stays_whole(tmp_path: Path) -> None:
    done = forge(
        tmp_path,
        "try:\n    os.ftruncate(fd, 0)\nexcept PermissionError:\n    pass\n",
        "cat", "/etc/passwd",
    )  # fmt: skip
    assert done.status == 0, done.stderr.decode()
    assert b"FN|/etc/passwd\n" in done.trace.read_bytes()


@pytest.mark.parametrize(
    "at", [pytest.param(0, id="magic"), pytest.param(8, id="n_chunks"), pytest.param(12, id="open")]
)
def test_a_head_that_a_program_overwrites_is_repaired_and_reported(tmp_path: Path, at: int) -> None:
    script = f"memory[{at}:{at + 4}] = bytes(4)\nwhile memory[{at}:{at + 4}] == bytes(4): pass\n"
    done = forge(tmp_path, script, "cat", "/etc/passwd")
    assert done.status == 0, done.stderr.decode()
    assert b"FN|/etc/passwd\n" in done.trace.read_bytes()
    assert "could not be understood" in warnings(tmp_path)


def test_times_to_come_are_not_believed(tmp_path: Path) -> None:
    script = f"put(record({OPEN}, os.getpid(), 2**64 - 1, (0, 0, 9), (b'/x', b'/x', b'')))\n"
    done = forge(tmp_path, script)
    assert done.status == 0, done.stderr.decode()
    trace = trace_lines.parse(done.trace.read_bytes())
    assert b"FN|/x" in [line.data for line in trace.lines]
    ended = trace.lines[-1].time_ns
    assert max(line.time_ns for line in trace.lines) <= ended + 10**9
    assert ended < 2**62


@pytest.mark.parametrize("pid", ["0", "2**32 - 1", "2**31", "2**22 + 1"])
def test_numbers_that_no_process_has_are_refused(tmp_path: Path, pid: str) -> None:
    script = f"put(record({OPEN}, {pid}, 1, (0, 0, 9), (b'/forged', b'', b'')))\n"
    done = forge(tmp_path, script)
    assert done.status == 0, done.stderr.decode()
    assert b"/forged" not in done.trace.read_bytes()
    assert "1 part of the shared memory could not be understood" in warnings(tmp_path)


def test_parts_without_an_end_are_dropped_and_counted(tmp_path: Path) -> None:
    script = (
        "for i in range(0, 65536, 128):\n"
        "    numbers = range(i, i + 128)\n"
        f"    put(*[record({INTENT}, os.getpid(), 1, part=n, flags=1) for n in numbers])\n"
    )
    done = forge(tmp_path, script)
    assert done.status == 0, done.stderr.decode()
    assert "could not be understood" in warnings(tmp_path)


def test_response_files_without_an_absolute_name_are_counted_as_missed(tmp_path: Path) -> None:
    now = "os.getpid(), time.monotonic_ns()"
    records = (
        f"record({RESPONSE}, {now}, strings=(b'relative', b'-c'))",
        f"record({RESPONSE}, {now}, strings=(b'/with\\0end', b'-c'))",
        f"record({RESPONSE}, {now})",
        f"record({RESPONSE}, {now}, (-1,), (b'/x', b'-c'))",
    )
    side = tmp_path / "side"
    done = forge(tmp_path, f"put({', '.join(records)})\n", more=("--response-files", str(side)))
    assert done.status == 0, done.stderr.decode()
    assert json.loads((tmp_path / "stats").read_text())["missed_response_files"] == 3
    assert [item[1:] for item in responses.read(side.read_bytes())] == [(b"/x", b"-c")]


@pytest.mark.root
def test_a_program_of_another_user_is_reported_as_missing(tmp_path: Path, public: Path) -> None:
    need_root()
    work = tmp_path / "work"
    work.mkdir()
    words = [need_tool("setpriv", "util-linux"), "--reuid", "65534", "--clear-groups"]
    options = ["--stats", str(tmp_path / "stats"), *public_libraries(public)]
    done = capture([*words, "cat", "/etc/hostname"], work, options=options, backend=PRELOAD)
    assert done.status == 0, done.stderr.decode()
    assert b"PP|/usr/bin/cat\n" in done.trace.read_bytes()
    assert "1 execution was of programs that did not load the library" in warnings(tmp_path)


@pytest.fixture
def blocked(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A pipe, and the file that a process makes when somebody opens the pipe."""
    pipe, opened = tmp_path / "pipe", tmp_path / "opened"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", 'exec 3>"$0"; echo >"$1"', pipe, opened])
    yield pipe, opened
    writer.kill()
    writer.wait()


def test_only_regular_files_are_opened_to_see_why(
    tmp_path: Path, blocked: tuple[Path, Path]
) -> None:
    pipe, opened = blocked
    name = os.fsencode(pipe)
    intent = f"record({INTENT}, os.getpid(), time.monotonic_ns(), (1,), ({name!r}, b'/', b'x'))"
    script = f"put({intent})\nos._exit(0)\n"
    done = forge(tmp_path, script)
    assert done.status == 0, done.stderr.decode()
    assert b"PP|" + name in done.trace.read_bytes()
    assert not opened.exists()


def test_a_second_sigterm_kills_only_the_build(tmp_path: Path) -> None:
    bystander = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    script = (
        f"put(record({BORN}, {bystander.pid}, 1, (os.getpid(),)))\n"
        "time.sleep(1)\n"  # until the record is taken in: it waits for older ones
        'print("ready", flush=True)\n'
    )
    work = tmp_path / "work"
    work.mkdir()
    (work / "forge.py").write_text(FORGE + script)
    stubborn = '"$0" forge.py; trap "" TERM; echo; exec sleep 1000'
    command = PRELOAD.command(tmp_path / "trace", ["sh", "-c", stubborn, sys.executable], [])
    with subprocess.Popen(command, cwd=work, stdout=subprocess.PIPE) as tracer:
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == b"ready\n"
        assert tracer.stdout.readline() == b"\n"
        while tracer.poll() is None:
            tracer.send_signal(signal.SIGTERM)
            try:
                tracer.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
    assert bystander.poll() is None
    assert bystander.stdin is not None
    bystander.stdin.close()
    assert bystander.wait(60) == 0


@pytest.mark.parametrize("size", [0, 4096])
def test_another_file_in_place_of_the_memory_harms_no_program(tmp_path: Path, size: int) -> None:
    """The collector's number may come again after its end, for any process with any file."""
    other = tmp_path / "other"
    other.write_bytes(bytes(size))
    library = next(PRELOAD.path().with_name("preload").glob("libetrace-x86_64.so"))
    with other.open("r+b") as file:
        name = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        values = {"LD_PRELOAD": str(library), "ETRACE_PRELOAD": f"{name}:0:{library}"}
        done = subprocess.run(["true"], env={**os.environ, **values}, check=False)
    assert done.returncode == 0
    assert other.read_bytes() == bytes(size)


# ---- whatever it likes, all the time

ETRACE = Path(sys.executable).parent / "etrace"
#: overwrites the head of the memory again and again until it is killed
SPOIL = """
import mmap, os, sys
variable = os.environ["ETRACE_PRELOAD"]
fd = os.open(variable.partition(":")[0], os.O_RDWR)
memory = mmap.mmap(fd, 1 << 17)
content = bytes([int(sys.argv[1])]) * (len(memory) - 32)
print("ready", flush=True)
while True:
    memory[32:] = content
"""
BUILD = """
{python} -c '{spoil}' {byte} >spoiling & spoiler=$!
until [ -s spoiling ]; do :; done
i=0
while [ $i -lt 10 ]; do
	ls -l / >out || exit 1
	env | grep -q '^LD_PRELOAD=[^:]*/libetrace-[^:]*$' || exit 2
	i=$((i + 1))
done
kill $spoiler
exit 7
"""


@pytest.mark.parametrize("byte", [1, 0x41])
def test_the_build_goes_on_in_spoiled_memory(tmp_path: Path, byte: int) -> None:
    script = BUILD.format(python=sys.executable, spoil=SPOIL, byte=byte)
    done = subprocess.run(
        [ETRACE, "run", "--backend", "preload", "--", "sh", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, (tmp_path / "out").stat().st_size > 0) == (7, True), done.stderr
    assert (tmp_path / ".nfsdb").read_bytes().startswith(b"INITCWD=")


def test_a_program_that_forbids_itself_all_calls_is_not_killed_at_its_end(tmp_path: Path) -> None:
    """Why the library does not ask the kernel what a process used: decision 47."""
    confined = compiled("confined", tmp_path / "work")
    done = subprocess.run(
        [ETRACE, "run", "--backend", "preload", "--", confined],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    trace = (tmp_path / ".nfsdb").read_bytes()
    assert trace.count(b"!Exit|") == 1
    assert b"!Usage|" not in trace
