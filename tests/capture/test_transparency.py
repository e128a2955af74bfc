# SPDX-License-Identifier: Apache-2.0
"""A build does under capture what it does without: statuses, signals, jobs, descriptors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trace_lines
from backends import PTRACE, Captured, capture, need_root, need_tool
from event_programs import DATA, compiled
from terminal import CTRL_C, CTRL_D, CTRL_Z, Terminal

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent", "PS1": "> "}
# What capture adds to the environment, so that LeakSanitizer does not ask for ptrace.
ADDED = {"ASAN_OPTIONS": "detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}


def lines(run: Captured) -> list[bytes]:
    return [line.data for line in trace_lines.parse(run.trace.read_bytes()).lines]


def both_ways(command: list[str], folder: Path) -> tuple[Captured, Captured]:
    """Run `command` without and with capture."""
    done = subprocess.run(
        command, cwd=folder, env=ENV, input=b"", capture_output=True, check=False, timeout=60
    )
    native = Captured(Path(), done.returncode, done.stdout, done.stderr)
    return native, capture(command, folder, env=ENV, timeout=60)


def assert_same(command: list[str], folder: Path) -> Captured:
    """Check that a command ends and prints the same with capture; return the captured run."""
    native, run = both_ways(command, folder)
    assert (run.status, run.stdout, run.stderr) == (native.status, native.stdout, native.stderr)
    return run


@pytest.mark.parametrize("status", [0, 1, 2, 42, 125, 126, 127, 128, 130, 143, 255])
def test_the_exit_status_is_the_commands_own(status: int, folder: Path) -> None:
    run = assert_same(["sh", "-c", f"exit {status}"], folder)
    assert run.status == status
    assert lines(run)[-1] == b"Exit|status=%d" % status


@pytest.mark.parametrize(
    "name", ["SIGHUP", "SIGINT", "SIGQUIT", "SIGABRT", "SIGKILL", "SIGSEGV", "SIGPIPE", "SIGTERM"]
)
def test_death_by_a_signal_is_passed_on_as_that_signal(name: str, folder: Path) -> None:
    number = signal.Signals[name].value
    run = assert_same(["sh", "-c", f"ulimit -c 0; kill -{number} $$"], folder)
    assert run.status == -number
    assert b"Exit|status=%d" % (128 + number) in lines(run)


def test_a_command_that_does_not_exist_is_reported_as_by_a_shell(folder: Path) -> None:
    run = capture(["no-such-command"], folder, env=ENV)
    assert run.status == 127
    assert b"no-such-command" in run.stderr
    (folder / "data").write_text("no program\n")
    run = capture(["./data"], folder)
    assert run.status == 126
    assert b"./data" in run.stderr


def test_standard_streams_are_the_commands_own(folder: Path) -> None:
    run = capture(["sh", "-c", "tr a-z A-Z; echo error >&2"], folder, stdin=b"bytes\x00\xff\n")
    assert (run.stdout, run.stderr) == (b"BYTES\x00\xff\n", b"error\n")


STATE = """
import os, resource, signal
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
print(sorted(os.listdir("/proc/self/fd")))
for name in ("SigBlk", "SigIgn", "SigCgt", "CapEff", "CapPrm", "CapAmb", "Umask", "Uid", "Groups"):
    print(name, status[name])
print(os.getcwd(), os.getpgrp(), os.getsid(0), os.nice(0), open("/proc/self/personality").read())
print([resource.getrlimit(limit) for limit in range(16)])
print(open("/proc/self/oom_score_adj").read(), open("/proc/self/timerslack_ns").read())
"""


def test_descriptors_signals_and_limits_are_inherited_as_they_are(folder: Path) -> None:
    assert_same([sys.executable, "-c", STATE], folder)
    ignoring = f"trap '' PIPE USR1; exec {sys.executable} -c '{STATE}' 5</dev/null"
    assert_same(["bash", "-c", ignoring], folder)


def test_a_program_sees_the_cores_that_it_may_run_on(folder: Path) -> None:
    program = compiled("cores", folder)
    assert b"one core: 1\n" in assert_same([str(program)], folder).stdout


def test_the_environment_gains_only_what_is_documented(folder: Path) -> None:
    native, run = both_ways(["env", "-0"], folder)
    before, after = (set(out.stdout.split(b"\0")) for out in (native, run))
    assert before <= after
    assert after - before == {f"{name}={value}".encode() for name, value in ADDED.items()}


def test_stopping_and_continuing_a_child_is_seen_by_its_parent(folder: Path) -> None:
    script = """
import os, signal
read_end, write_end = os.pipe()
pid = os.fork()
if not pid:
    os.kill(os.getpid(), signal.SIGSTOP)
    os.read(read_end, 1)  # not over before its parent has seen it continue
    os._exit(5)
print(os.WSTOPSIG(os.waitpid(pid, os.WUNTRACED)[1]))
os.kill(pid, signal.SIGCONT)
print(os.WIFCONTINUED(os.waitpid(pid, os.WCONTINUED)[1]))
os.write(write_end, b"x")
print(os.waitpid(pid, 0)[1] >> 8)
"""
    assert_same([sys.executable, "-c", script], folder)


def talk(terminal: Terminal) -> int:
    """Use job control in an interactive shell: stop, list, continue, interrupt, kill."""
    terminal.wait_for("> ")
    terminal.line("sleep 100")
    terminal.wait_for_program("sleep")
    terminal.type(CTRL_Z)
    terminal.wait_for(r"\[1\]\+  Stopped +sleep 100")
    terminal.line("jobs; echo listed")
    terminal.wait_for(r"\[1\]\+  Stopped +sleep 100")
    terminal.wait_for("^listed")
    terminal.line("bg; jobs -r; echo run''ning")
    terminal.wait_for(r"\[1\]\+  Running +sleep 100 &")
    terminal.wait_for("^running")
    terminal.line("fg")
    terminal.wait_for_program("sleep")
    terminal.type(CTRL_C)
    terminal.line("echo status $?")
    terminal.wait_for("^status 130")
    terminal.line("sleep 50 & kill %1; wait %1; echo wai''ted $?")
    terminal.wait_for("^waited 143")
    terminal.line("cat | tr a-z A-Z | (read x; echo got $x)")
    terminal.wait_for_program("cat")
    terminal.line("through a pipe")
    terminal.type(CTRL_D)
    terminal.wait_for("^got THROUGH A PIPE")
    terminal.line("exit 5")
    return terminal.end()


def test_job_control_works_in_an_interactive_shell(folder: Path) -> None:
    need_tool("bash", "bash")
    shell = ["bash", "--norc", "--noprofile", "-i"]
    with Terminal(shell, folder, ENV) as terminal:
        assert talk(terminal) == 5
    trace = folder.with_name("trace")
    with Terminal(PTRACE.command(trace, shell, []), folder, ENV) as terminal:
        assert talk(terminal) == 5
    data = [line.data for line in trace_lines.parse(trace.read_bytes()).lines]
    assert b"Exit|status=130" in data
    assert b"Exit|status=143" in data


def test_the_captured_command_is_a_job_of_its_shell(folder: Path) -> None:
    need_tool("bash", "bash")
    command = PTRACE.command(folder.with_name("trace"), ["sh", "-c", "sleep 1; exit 6"], [])
    with Terminal(["bash", "--norc", "--noprofile", "-i"], folder, ENV) as terminal:
        terminal.wait_for("> ")
        terminal.line(" ".join(f"'{word}'" for word in command))
        terminal.wait_for_program("sleep")
        terminal.type(CTRL_Z)
        terminal.wait_for(r"\[1\]\+  Stopped")
        terminal.line("fg; echo status $?")
        terminal.wait_for("^status 6")
        terminal.line(" ".join(f"'{word}'" for word in [*command[:-1], "sleep 100"]))
        terminal.wait_for_program("sleep")
        terminal.type(CTRL_C)
        terminal.line("echo status $?")
        terminal.wait_for("^status 130")
        terminal.line("exit 0")
        assert terminal.end() == 0


def test_timeout_ends_its_command_in_time(folder: Path) -> None:
    run = assert_same(["timeout", "0.5", "sleep", "1000"], folder)
    assert run.status == 124


def test_a_blocking_open_of_a_fifo_meets_its_writer(folder: Path) -> None:
    script = "rm -f f; mkfifo f; (sleep 0.2; echo through > f) & cat f; wait"
    assert assert_same(["sh", "-c", script], folder).stdout == b"through\n"


def test_traps_and_interrupted_calls_behave_the_same(folder: Path) -> None:
    script = "trap 'echo usr1' USR1; (sleep 0.3; kill -USR1 $$) & sleep 1 & wait; wait; echo end"
    assert assert_same(["bash", "-c", script], folder).stdout == b"usr1\nend\n"


def test_threads_that_spawn_programs_at_once(folder: Path) -> None:
    script = """
import subprocess
from concurrent.futures import ThreadPoolExecutor
run = lambda n: subprocess.run(["sh", "-c", f"exit {n % 7}"], close_fds=False).returncode
with ThreadPoolExecutor(16) as pool:
    print(list(pool.map(run, range(400))))
"""
    run = assert_same([sys.executable, "-c", script], folder)
    found = lines(run)
    forks = sum(line.startswith(b"SchedFork|") for line in found)
    assert sum(line.startswith(b"Exit|") for line in found) == forks + 1
    assert found.count(b"A[0]sh") == 400
    for status in range(1, 7):
        assert found.count(b"Exit|status=%d" % status) == len(range(status, 400, 7))


def test_threads_that_open_at_once_under_a_rain_of_signals(folder: Path) -> None:
    program = compiled("thread_storm", folder)
    assert_same([str(program), "6", "500"], folder)
    trace = trace_lines.parse(folder.with_name("work.nfsdb").read_bytes())
    names = trace_lines.name_tasks(trace, trace.roots()[0])
    opened = {}
    for upid, name in names.items():
        found = list(trace_lines.events(trace.of(upid)))
        if name != "1":
            opened[name] = [event.strings["FN"] for event in found if event.tag == "Open"]
            assert [sum(e.tag == tag for e in found) for tag in ("Dup", "Close")] == [500, 1000]
    assert sorted(opened.values()) == [[os.fsencode(folder / f"t{n}")] * 500 for n in range(6)]


def test_a_storm_of_short_programs_loses_none(folder: Path) -> None:
    script = "i=0; while [ $i -lt 500 ]; do /bin/true; /bin/false; i=$((i+1)); done"
    found = lines(assert_same(["sh", "-c", script], folder))
    assert found.count(b"PP|/usr/bin/true") + found.count(b"PP|/bin/true") == 500
    assert found.count(b"Exit|status=1") == 500
    assert found.count(b"Exit|status=0") == 501


def test_two_thousand_processes_at_once(folder: Path) -> None:
    script = """
import os, sys
hold, release = os.pipe()
ready, say = os.pipe()
children = []
for n in range(2000):
    pid = os.fork()
    if not pid:
        os.close(release)
        os.write(say, b".")
        os.read(hold, 1)
        os._exit(n % 100)
    children.append(pid)
while len(os.read(ready, 1)) and (n := n - 1) >= 0:
    pass
os.close(release)
print(sum(os.waitpid(pid, 0)[1] >> 8 for pid in children))
"""
    run = assert_same([sys.executable, "-c", script], folder)
    assert run.stdout == b"%d\n" % (2000 // 100 * sum(range(100)))
    trace = trace_lines.parse(run.trace.read_bytes())
    assert len({line.upid for line in trace.lines}) == 2001
    assert sum(line.data.startswith(b"Exit|") for line in trace.lines) == 2001


@pytest.fixture
def sanitized(folder: Path) -> dict[str, Path]:
    """Programs under sanitizers, by name."""
    need_tool("gcc", "gcc")
    programs = {}
    for source, flag in (("tidy", "leak"), ("tidy", "address"), ("overflow", "address")):
        program = folder.with_name(f"{source}-{flag}")
        command: list[str | Path] = [
            "gcc",
            "-O0",
            "-g",
            f"-fsanitize={flag}",
            "-o",
            program,
            DATA / f"{source}.c",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.fail(f"sanitizers are missing: apt-get install gcc\n{done.stderr}")
        programs[program.name] = program
    return programs


def test_programs_under_sanitizers_run(sanitized: dict[str, Path], folder: Path) -> None:
    assert assert_same([str(sanitized["tidy-leak"])], folder).status == 0
    assert assert_same([str(sanitized["tidy-address"])], folder).status == 0
    native, run = both_ways([str(sanitized["overflow-address"])], folder)
    assert (run.status, native.status) == (1, 1)
    assert b"heap-buffer-overflow" in run.stderr


def test_sanitizer_options_of_the_user_are_kept(folder: Path) -> None:
    env = ENV | {"ASAN_OPTIONS": "verbosity=1", "LSAN_OPTIONS": "detect_leaks=1"}
    run = capture(["sh", "-c", "echo $ASAN_OPTIONS $LSAN_OPTIONS"], folder, env=env)
    assert run.stdout == b"verbosity=1:detect_leaks=0 detect_leaks=1\n"


@pytest.mark.root
def test_set_user_id_programs_elevate_for_root_and_run_plainly_for_others(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    need_root()
    public = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    try:
        public.chmod(0o777)
        program = public / "whoami"
        subprocess.run(["cp", need_tool("id", "coreutils"), program], check=True)
        os.chown(program, 1, 1)
        program.chmod(0o4755)
        work = public / "work"
        work.mkdir()
        work.chmod(0o777)
        assert capture([program, "-u"], work).stdout == b"1\n"
        tracer = public / "tracer"
        subprocess.run(["cp", PTRACE.path(), tracer], check=True)
        done = subprocess.run(
            [tracer, "-o", public / "trace", "--", program, "-u"],
            user=65534,
            group=65534,
            extra_groups=[],
            cwd=work,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, b"65534\n")  # documented: no_new_privs
    finally:
        subprocess.run(["rm", "-rf", public], check=True)
