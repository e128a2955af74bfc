# SPDX-License-Identifier: Apache-2.0
"""What happens to the build and to its trace when something goes wrong around them."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trace_lines
from backends import PTRACE, capture, need_root, need_tool
from event_programs import compiled
from failing_calls import forbid
from trying import LIMIT_S, until

FAILED = 125  # etrace itself failed
APART_S = 0.3  # two requests; what comes faster is one, sent twice


@contextmanager
def running(
    script: str, folder: Path, options: tuple[str, ...] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Start `script` under capture in a session of its own and wait until its `sleep` runs."""
    process = subprocess.Popen(
        PTRACE.command(folder / "trace", ["sh", "-c", script], options),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout
    try:
        assert process.stdout.readline() == b"ready\n"
        until(lambda: "sleep" in map(name_of, descendants(process.pid)))
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def data_of(trace: Path) -> list[bytes]:
    return [line.data for line in trace_lines.parse(trace.read_bytes()).lines]


def data_so_far(trace: Path) -> list[bytes]:
    """Read the whole lines of a trace that is still being written."""
    whole, newline, _ = trace.read_bytes().rpartition(b"\n")
    return [line.data for line in trace_lines.parse(whole + newline).lines] if whole else []


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    found = children(pid)
    return [*found, *(grandchild for child in found for grandchild in descendants(child))]


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def is_gone(pid: int) -> bool:
    return state_of(pid) in "ZX"


def test_ctrl_c_ends_the_build_and_leaves_a_whole_trace(folder: Path) -> None:
    stats = folder / "stats"
    script = "echo ready; sleep 60"
    with running(script, folder, ("--stats", str(stats))) as process:
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(LIMIT_S) == -signal.SIGINT
    data = data_of(folder / "trace")
    assert data.count(b"Exit|status=130") == sum(d.startswith(b"SchedFork|") for d in data) + 1
    assert json.loads(stats.read_text())["ended"] == "interrupted"


def test_a_build_that_handles_ctrl_c_ends_as_it_likes(folder: Path) -> None:
    script = "trap 'echo tidied; exit 7' INT; echo ready; sleep 60"
    with running(script, folder) as process:
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(LIMIT_S) == 7
        assert process.stdout
        assert process.stdout.read() == b"tidied\n"
    assert b"Exit|status=7" in data_of(folder / "trace")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_to_the_tracer_alone_is_handed_to_the_build(name: str, folder: Path) -> None:
    number = signal.Signals[name]
    with running("echo ready; exec sleep 60", folder) as process:
        process.send_signal(number)
        assert process.wait(LIMIT_S) == -number
    assert data_of(folder / "trace")[-1] == b"Exit|status=%d" % (128 + number)


def test_a_second_sigterm_ends_a_build_that_ignored_the_first(folder: Path) -> None:
    script = "trap '' TERM; echo ready; sleep 60"
    with running(script, folder) as process:
        build = descendants(process.pid)
        process.send_signal(signal.SIGTERM)
        time.sleep(APART_S)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) != 0
        until(lambda: all(map(is_gone, build)))
    assert b"Exit|status=137" in data_of(folder / "trace")


def test_a_tracer_that_does_not_answer_is_killed_with_the_build(folder: Path) -> None:
    with running("trap '' TERM; echo ready; sleep 60", folder) as process:
        build = descendants(process.pid)
        (tracer,) = children(process.pid)
        os.kill(tracer, signal.SIGSTOP)
        until(lambda: state_of(process.pid) == "T")
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
        until(lambda: state_of(process.pid) == "S")
        time.sleep(APART_S)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == FAILED
        until(lambda: all(map(is_gone, build)))


def test_the_build_dies_with_its_tracer_and_the_trace_so_far_is_whole_lines(folder: Path) -> None:
    with running("echo ready; sleep 60; sleep 61", folder) as process:
        build = descendants(process.pid)
        assert build
        until(lambda: b"A[1]60" in data_so_far(folder / "trace"))
        for pid in [*children(process.pid), process.pid]:  # its parts, without a chance to react
            if name_of(pid).startswith("etrace"):
                os.kill(pid, signal.SIGKILL)
        process.wait(LIMIT_S)
        until(lambda: all(map(is_gone, build)))
    trace = trace_lines.parse((folder / "trace").read_bytes())
    assert trace.cwd == os.fsencode(folder)


def test_the_tracing_part_killed_alone_is_reported(folder: Path) -> None:
    with running("echo ready; sleep 60", folder) as process:
        build = descendants(process.pid)
        (tracer,) = children(process.pid)
        os.kill(tracer, signal.SIGKILL)
        assert process.wait(LIMIT_S) == FAILED
        assert process.stderr
        assert b"killed by signal 9" in process.stderr.read()
        until(lambda: all(map(is_gone, build)))


def test_an_output_that_cannot_be_written_is_named_and_nothing_runs(folder: Path) -> None:
    run = capture(["touch", "ran"], folder, trace=folder / "absent/trace")
    assert run.status == FAILED
    assert b"absent/trace" in run.stderr
    assert b"No such file or directory" in run.stderr
    assert not (folder / "ran").exists()


def test_a_device_that_is_full_does_not_stop_the_build(folder: Path) -> None:
    stats = folder / "stats"
    options = ("--stats", str(stats))
    run = capture(
        ["sh", "-c", "touch ran; exit 3"], folder, options=options, trace=Path("/dev/full")
    )
    assert run.status == 3
    assert (folder / "ran").exists()
    assert b"/dev/full" in run.stderr
    assert b"No space left on device" in run.stderr
    reported = json.loads(stats.read_text())
    assert reported["ended"] == "write-error"
    assert reported["lost"] > 0
    # an incomplete trace never looks like success
    assert capture(["true"], folder, trace=Path("/dev/full")).status == FAILED


@pytest.mark.root
def test_a_disk_that_fills_leaves_whole_events(folder: Path) -> None:
    need_root()
    small = folder / "small"
    small.mkdir()
    build = "i=0; while [ $i -lt 1500 ]; do : < /dev/null; i=$((i+1)); done; touch ran"
    command = PTRACE.command(
        small / "trace", ["sh", "-c", build], ["--stats", str(folder / "stats")]
    )
    script = (
        'mount -t tmpfs -o size=64k none "$1" && { shift; "$@"; status=$?; '
        "cp small/trace kept; exit $status; }"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", small, *command],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == FAILED
    assert b"No space left on device" in done.stderr
    assert (folder / "ran").exists()
    assert json.loads((folder / "stats").read_text())["lost"] > 0
    kept = (folder / "kept").read_bytes()
    assert len(kept) > 32 << 10  # every whole event that fitted, not only those of earlier writes
    assert kept.endswith(b"\n")
    trace = trace_lines.parse(kept)
    assert not trace.lines or trace.lines[-1].data.startswith((b"FO|", b"Close|", b"Dup|", b"End"))


def test_statistics_and_progress_agree_with_the_trace(folder: Path) -> None:
    stats = folder / "stats"
    reader, writer = os.pipe()
    command = PTRACE.command(
        folder / "trace",
        ["sh", "-c", "/bin/true; sleep 1.2; exit 9"],
        ["--stats", str(stats), "--status-fd", str(writer)],
    )
    done = subprocess.run(command, cwd=folder, pass_fds=[writer], capture_output=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (9, b"")
    reported = json.loads(stats.read_text())
    text = (folder / "trace").read_bytes()
    data = data_of(folder / "trace")
    assert reported["bytes"] == len(text)
    assert reported["lines"] == text.count(b"\n")
    assert reported["processes"] == sum(d.startswith(b"SchedFork|") for d in data) + 1
    assert reported["executions"] == sum(d.startswith(b"New_proc|") for d in data)
    assert reported["opens"] == sum(d.startswith(b"Open|") for d in data)
    assert (reported["lost"], reported["ended"], reported["exit_status"]) == (0, "exit", 9)
    with os.fdopen(reader) as progress:
        reports = [json.loads(line) for line in progress]
    assert reports
    assert reports[-1]["processes"] == reported["processes"]


def test_processes_that_outlive_the_command_do_not_hold_it_up(folder: Path) -> None:
    os.mkfifo(folder / "hold")
    script = "(cat hold; echo late > late) >/dev/null 2>&1 & exit 4"
    run = capture(["sh", "-c", script], folder)  # which returns although cat waits
    assert run.status == 4
    assert b"outlive" in run.stderr
    (folder / "hold").write_bytes(b"")
    until((folder / "late").exists)  # the process that was left goes on
    assert not any(b"/late" in data for data in data_of(run.trace))


def test_all_processes_are_waited_for_on_request(folder: Path) -> None:
    script = "(sleep 1; echo late > late) & exit 4"
    run = capture(["sh", "-c", script], folder, options=["--wait-all"])
    assert (run.status, run.stderr) == (4, b"")
    data = data_of(run.trace)
    assert b"FN|" + os.fsencode(folder / "late") in data
    forks = sum(d.startswith(b"SchedFork|") for d in data)
    assert sum(d.startswith(b"Exit|") for d in data) == forks + 1


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("strace", ["true"]), ("gdb", ["-nx", "-batch", "-ex", "run", "/bin/true"])],
)
def test_a_tracer_inside_the_build_is_refused_and_named(
    tool: str, arguments: list[str], folder: Path
) -> None:
    need_tool(tool, tool)
    run = capture([tool, *arguments], folder)
    assert run.stderr.count(f"etrace: '{tool}'".encode()) == 1
    assert b"was refused ptrace" in run.stderr


def test_capture_inside_a_capture_says_what_forbids_it(folder: Path) -> None:
    inner = PTRACE.command(folder / "inner", ["touch", "ran"], [])
    run = capture(inner, folder)
    assert run.status == FAILED
    assert b"ptrace was refused: Operation not permitted" in run.stderr
    assert b"this process is itself traced" in run.stderr
    assert not (folder / "ran").exists()


def test_capture_under_strace_says_what_forbids_it(folder: Path) -> None:
    need_tool("strace", "strace")
    inner = PTRACE.command(folder / "inner", ["touch", "ran"], [])
    run = subprocess.run(
        ["strace", "-f", "-o", folder / "log", *inner], cwd=folder, capture_output=True, check=False
    )
    assert run.returncode == FAILED
    assert b"this process is itself traced" in run.stderr
    assert not (folder / "ran").exists()


NR_PTRACE = 101


def forbid_ptrace() -> None:
    """Refuse ptrace to this process and its children, as a container's profile does."""
    forbid(NR_PTRACE, errno.EPERM)


def test_a_profile_that_forbids_ptrace_is_named(folder: Path) -> None:
    run = subprocess.run(
        PTRACE.command(folder / "trace", ["touch", "ran"], []),
        cwd=folder,
        preexec_fn=forbid_ptrace,
        capture_output=True,
        check=False,
    )
    assert run.returncode == FAILED
    assert b"ptrace was refused: Operation not permitted" in run.stderr
    assert b"seccomp profile is in force" in run.stderr
    assert not (folder / "ran").exists()


@pytest.mark.root
def test_a_pid_that_is_used_again_gives_another_upid(folder: Path) -> None:
    need_root()
    script = (
        "i=0; while [ $i -lt 20 ]; do echo 300 > /proc/sys/kernel/ns_last_pid; /bin/true; "
        "i=$((i+1)); done"
    )
    trace = folder / "trace"
    done = subprocess.run(
        [
            "unshare",
            "--pid",
            "--fork",
            "--mount-proc",
            *PTRACE.command(trace, ["sh", "-c", script], []),
        ],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    lines = trace_lines.parse(trace.read_bytes()).lines
    upids = {
        line.upid for line in lines if line.data.endswith(b"/true") and line.data.startswith(b"PP|")
    }
    assert len(upids) == 20
    assert {upid & ((1 << trace_lines.UPID_PID_BITS) - 1) for upid in upids} == {301}


@pytest.mark.parametrize("adopter", ["init", "subreaper"])
def test_children_of_killed_forkers_are_not_waited_for(adopter: str, folder: Path) -> None:
    program = compiled("orphans", folder)
    command = PTRACE.command(
        folder / "trace", [program, "60", *([adopter] if adopter == "subreaper" else [])], ()
    )
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    trace_lines.parse((folder / "trace").read_bytes())
