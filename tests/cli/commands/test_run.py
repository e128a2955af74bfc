# SPDX-License-Identifier: Apache-2.0
"""`etrace run` as a user sees it."""

from __future__ import annotations

import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pytest
from backends import need_root
from failing_calls import preloading
from terminal import wait_for_program

from etrace.cli.etrace.run import report

ETRACE = str(Path(sys.executable).parent / "etrace")


def run(where: Path, *args: str, shell: str = "", **more: Any) -> subprocess.CompletedProcess[str]:
    command = [*args, "--", "sh", "-c", shell] if shell else list(args)
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [ETRACE, "run", "-o", str(where), *command],
        capture_output=True, text=True, check=False, **more,
    )  # fmt: skip
    return done


def test_a_trace_and_its_stats_are_written(tmp_path: Path) -> None:
    done = run(tmp_path, shell="true; /bin/true")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / ".nfsdb").read_bytes().splitlines()
    assert lines[0] == b"INITCWD=" + os.fsencode(Path.cwd())
    stats = json.loads((tmp_path / ".nfsdb.stats").read_text())
    assert (stats["lost"], stats["exit_status"]) == (0, 0)
    assert stats["backend"] in ("bpf", "ptrace")  # what this machine allows
    assert stats["executions"] == sum(b"!New_proc|" in line for line in lines) >= 2
    assert stats["opens"] == sum(b"!Open|" in line for line in lines)
    assert stats["bytes"] == (tmp_path / ".nfsdb").stat().st_size


@pytest.mark.parametrize("name", [".nfsdb", ".nfsdb.json"])
def test_the_name_of_a_trace_is_no_directory_for_it(tmp_path: Path, name: str) -> None:
    done = run(tmp_path / name, shell="true")
    assert done.returncode == 2
    assert done.stderr.endswith(
        f"{tmp_path}/{name}: -o takes a directory, and the trace is DIR/.nfsdb:"
        f" write -o {tmp_path}\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [0, 1, 7, 125, 255])
def test_the_exit_status_is_that_of_the_command(tmp_path: Path, status: int) -> None:
    assert run(tmp_path, shell=f"exit {status}").returncode == status


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM", "SIGINT"])
def test_a_signal_that_ends_the_command_ends_etrace(tmp_path: Path, name: str) -> None:
    number = signal.Signals[name]
    assert run(tmp_path, shell=f"kill -{number.value} $$").returncode == -number


def test_output_of_the_command_is_untouched(tmp_path: Path) -> None:
    done = run(tmp_path, "--quiet", shell="printf 'out\\n'; printf 'err' >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err")


def test_a_summary_says_what_to_do_next(tmp_path: Path) -> None:
    done = run(tmp_path, shell="exit 0")
    assert "etrace: 1 process, 1 command and " in done.stderr
    assert f"next: etrace report {tmp_path}\n" in done.stderr
    done = run(tmp_path, shell="exit 3")
    assert f"next: etrace summary {tmp_path}\n" in done.stderr


def test_both_backends_say_the_same_of_a_capture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for script in ("true; kill -INT $$", "for n in 1 2 3 4 5 6 7 8 9; do /bin/true; done"):
        done = run(Path(), shell=script)
        report(json.loads(Path(".nfsdb.stats").read_text()), ".nfsdb")
        assert capsys.readouterr().err == done.stderr.replace(
            "etrace: the older trace is now .nfsdb.old\n", ""
        )


def test_an_older_trace_is_kept(tmp_path: Path) -> None:
    run(tmp_path, shell="exit 1")
    first = (tmp_path / ".nfsdb").read_bytes()
    done = run(tmp_path, shell="exit 0")
    assert (tmp_path / ".nfsdb.old").read_bytes() == first
    assert "the older trace is now .nfsdb.old" in done.stderr


def test_a_command_that_is_not_there_is_127(tmp_path: Path) -> None:
    run(tmp_path, shell="exit 0")
    before = (tmp_path / ".nfsdb").read_bytes()
    done = run(tmp_path, "--", "no-such-command-here")
    assert done.returncode == 127
    assert (tmp_path / ".nfsdb").read_bytes() == before  # a slip of the hand costs no trace
    assert "no-such-command-here" in done.stderr


def test_a_command_that_is_not_executable_is_126(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("data")
    done = run(tmp_path, "--", str(tmp_path / "data"))
    assert done.returncode == 126
    assert "data" in done.stderr


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize(("name", "status"), [("data", 126), ("none", 127), ("lost", 126)])
def test_a_command_that_cannot_run_replaces_no_trace(
    tmp_path: Path, name: str, status: int
) -> None:
    bin_, out = tmp_path / "bin", tmp_path / "out"
    bin_.mkdir()
    (bin_ / "data").write_text("data")
    (bin_ / "lost").write_text("#!/no/such/interpreter\n")
    (bin_ / "lost").chmod(0o755)
    run(out, shell="exit 1")
    run(out, shell="exit 0")
    before = contents(out)
    assert sorted(before) == [".nfsdb", ".nfsdb.old", ".nfsdb.stats", ".nfsdb.stats.old"]
    for _ in range(2):
        assert run(out, "--", str(bin_ / name)).returncode in {status, 127}
    assert contents(out) == before


def test_an_older_trace_without_stats_leaves_no_stats_of_another_one(tmp_path: Path) -> None:
    run(tmp_path, shell="exit 1")
    run(tmp_path, shell="exit 2")
    (tmp_path / ".nfsdb.stats").unlink()
    run(tmp_path, shell="exit 3")
    assert sorted(contents(tmp_path)) == [".nfsdb", ".nfsdb.old", ".nfsdb.stats"]


def modes(directory: Path) -> dict[str, tuple[int, int]]:
    found = {path.name: path.stat() for path in directory.iterdir()}
    return {name: (stat.st_mode & 0o777, stat.st_uid) for name, stat in found.items()}


@pytest.fixture
def user() -> Iterator[Path]:
    """Give a directory of somebody who is not root, and who can reach it."""
    need_root()
    with tempfile.TemporaryDirectory(prefix="etrace-test-") as name:
        os.chown(name, 65534, 65534)
        yield Path(name)


@pytest.mark.root
def test_what_root_traces_is_for_its_owner_alone(tmp_path: Path, user: Path) -> None:
    for directory, owner in ((tmp_path / "root", 0), (user, 65534), (user / "new", 65534)):
        for _ in range(2):
            subprocess.run(
                [ETRACE, "run", "-q", "-o", directory, "--", "true"],
                check=True, umask=0o022, env={**os.environ, "SUDO_UID": "65534"},
            )  # fmt: skip
        names = (".nfsdb", ".nfsdb.old", ".nfsdb.stats", ".nfsdb.stats.old")
        assert {name: modes(directory)[name] for name in names} == dict.fromkeys(
            names, (0o600, owner)
        )


@pytest.mark.root
def test_no_link_of_a_user_leads_what_root_writes_elsewhere(tmp_path: Path, user: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    for name in (".nfsdb.starting", ".nfsdb", ".nfsdb.stats"):
        (user / name).symlink_to(kept)
    environment = {**os.environ, "SUDO_UID": "65534"}
    subprocess.run([ETRACE, "run", "-q", "-o", user, "--", "true"], check=True, env=environment)
    assert kept.read_text() == "kept"
    assert not (user / ".nfsdb").is_symlink()
    assert (user / ".nfsdb.old").is_symlink()


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("kill -INT $$", "interrupted"),
        ("trap : TERM; echo up; read line", "exit"),
        ("kill -SEGV $$", "signal"),
    ],
)
def test_an_interrupted_build_is_called_so(tmp_path: Path, script: str, ended: str) -> None:
    done = run(tmp_path, shell=script, input="")
    stats = json.loads((tmp_path / ".nfsdb.stats").read_text())
    assert stats["ended"] == ended
    assert ("the build was interrupted" in done.stderr) == (ended == "interrupted")


@pytest.mark.parametrize(("status", "ended"), [(7, "interrupted"), (0, "exit")])
def test_a_build_that_ends_when_it_is_asked_to_was_interrupted(
    tmp_path: Path, status: int, ended: str
) -> None:
    script = f"trap 'exit {status}' TERM; echo up; while :; do sleep 0.1; done"
    process = subprocess.Popen(
        [ETRACE, "run", "-q", "-o", tmp_path, "--", "sh", "-c", script], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.terminate()
    assert process.wait() == status
    assert json.loads((tmp_path / ".nfsdb.stats").read_text())["ended"] == ended


#: the parent of a program's first fork comes to itself late
LATE_PARENT = """
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

pid_t fork(void)
{
    static int first = 1;
    pid_t (*next)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "fork");
    int wait = first;
    pid_t pid;

    first = 0;
    pid = next();
    if (pid > 0 && wait)
        usleep(500000);
    return pid;
}
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_comes_before_etrace_listens_reaches_the_build(
    tmp_path: Path, number: signal.Signals
) -> None:
    script = "trap 'exit 7' TERM HUP INT; echo up; while :; do sleep 0.1; done"
    process = subprocess.Popen(
        [ETRACE, "run", "-q", "-o", tmp_path, "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        env=preloading(tmp_path, LATE_PARENT),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.send_signal(number)
    assert process.wait() == 7
    assert json.loads((tmp_path / ".nfsdb.stats").read_text())["ended"] == "interrupted"


#: modules that make the start slow: `etrace run` begins every build
SLOW = {"argparse", "dataclasses", "enum", "importlib", "json", "pathlib", "re", "signal", "typing"}


def test_a_build_begins_without_slow_imports(tmp_path: Path) -> None:
    start = str(Path(ETRACE).with_name("etrace_start"))
    words = ["-X", "importtime", start, "etrace", "run", "-q", "-o", str(tmp_path), "--", "true"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    own = done.stderr.partition(" site\n")[2].splitlines()
    assert SLOW.isdisjoint(line.rpartition("|")[2].strip() for line in own)
    assert any(line.endswith("etrace.cli.etrace.run") or "options" in line for line in own)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], "no command to trace"),
        (["--"], "no command to trace"),
        (["--backend", "magic", "--", "true"], "invalid choice: 'magic'"),
        (["--bogus", "--", "true"], "--bogus"),
    ],
)
def test_wrong_usage_is_2_and_says_what_is_wrong(args: list[str], text: str) -> None:
    done = subprocess.run([ETRACE, "run", *args], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert text in done.stderr


def test_an_output_that_cannot_be_written_is_125(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [ETRACE, "run", "-o", str(tmp_path / "file"), "--", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 125
    assert "hint:" in done.stderr


def test_descriptors_of_the_user_reach_the_command(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    command = ["sh", "-c", f"echo through > /dev/fd/{writer}"]
    subprocess.run(
        [ETRACE, "run", "-q", "-o", tmp_path, "--", *command], check=True, close_fds=False
    )
    os.close(writer)
    with os.fdopen(reader) as stream:
        assert stream.read() == "through\n"


class Terminal:
    """A command under a pseudo terminal of 10 rows and 80 columns."""

    def __init__(self, argv: list[str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 80, 0, 0))
            os.execv(argv[0], argv)

    def read(self) -> bytes:
        """Everything printed until the command ends."""
        out = b""
        while True:
            try:
                chunk = os.read(self.fd, 65536)
            except OSError:
                return out
            if not chunk:
                return out
            out += chunk

    def status(self) -> int:
        """Exit status, negative for a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_terminal_gets_a_status_row_and_is_restored(tmp_path: Path) -> None:
    terminal = Terminal(
        [ETRACE, "run", "-o", str(tmp_path), "--", "sh", "-c", "echo first; sleep 1.5; echo last"]
    )
    out = terminal.read()
    assert terminal.status() == 0
    assert b"\x1b[1;9r" in out  # the last of ten rows is taken out of the scrolling region
    assert b" etrace  0:0" in out
    assert b"(2 live)" in out
    assert out.index(b"first") < out.index(b"last") < out.rindex(b"\x1b[1;10r")


def test_ctrl_c_ends_the_command_and_keeps_the_trace(tmp_path: Path) -> None:
    terminal = Terminal([ETRACE, "run", "-o", str(tmp_path), "--", "sh", "-c", "echo up; sleep 60"])
    seen = b""
    while b"up" not in seen:
        seen += os.read(terminal.fd, 4096)
    wait_for_program(terminal.fd, "sleep")
    os.write(terminal.fd, b"\x03")
    terminal.read()
    assert terminal.status() == -signal.SIGINT
    assert b"!New_proc|" in (tmp_path / ".nfsdb").read_bytes()
    assert json.loads((tmp_path / ".nfsdb.stats").read_text())["signal"] == signal.SIGINT


def test_sigterm_reaches_the_command(tmp_path: Path) -> None:
    script = "trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.1; done"
    process = subprocess.Popen(
        [ETRACE, "run", "-q", "-o", str(tmp_path), "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.terminate()
    assert process.stdout.read() == "asked\n"
    assert process.wait() == 3


def test_a_run_inside_a_run_is_refused_and_harms_no_trace(tmp_path: Path) -> None:
    inner = f"{ETRACE} run --backend ptrace -o {tmp_path} -- true; echo inner $?"
    done = run(tmp_path, "-q", "--backend", "ptrace", shell=inner)
    assert done.stdout == "inner 125\n"
    assert "already traced" in done.stderr
    assert not (tmp_path / ".nfsdb.old").exists()
    assert b"!Exit|" in (tmp_path / ".nfsdb").read_bytes()


def test_a_second_run_in_the_same_directory_is_refused(tmp_path: Path) -> None:
    first = subprocess.Popen(
        [ETRACE, "run", "-q", "-o", tmp_path, "--", "sh", "-c", "echo up; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdin is not None
    assert first.stdout is not None
    assert first.stdout.readline() == "up\n"
    second = run(tmp_path, shell="true")
    assert second.returncode == 125
    assert "another capture is writing it" in second.stderr
    first.stdin.close()
    assert first.wait() == 1
    assert b"!Exit|status=1" in (tmp_path / ".nfsdb").read_bytes()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_messages_do_not_go_into_the_trace_where_a_stream_is_closed(
    tmp_path: Path, closed: str
) -> None:
    show = "for n in 0 1 2; do test -e /proc/$$/fd/$n && echo $n >> open; done; strace -V; true"
    command = f"{ETRACE} run -o . -- sh -c '{show}' {closed}"
    subprocess.run(["sh", "-c", command], check=False, cwd=tmp_path)
    kept = {"<": "1\n2\n", ">": "0\n2\n", "2": "0\n1\n"}
    expected = kept[closed[0]] if " " not in closed else ""
    shown = tmp_path / "open"
    assert (shown.read_text() if shown.exists() else "") == expected
    lines = (tmp_path / ".nfsdb").read_bytes().splitlines()
    assert all(b"!" in line for line in lines[1:])
    json.loads((tmp_path / ".nfsdb.stats").read_text())


def test_closed_standard_streams_do_not_stop_a_build(tmp_path: Path) -> None:
    command = f"{ETRACE} run -o {tmp_path} -- touch {tmp_path}/made <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0
    assert (tmp_path / "made").exists()


def test_a_deleted_working_directory_is_an_error_with_a_hint(tmp_path: Path) -> None:
    command = f"mkdir {tmp_path}/gone; cd {tmp_path}/gone; rmdir ../gone; {ETRACE} run -- true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 125
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_newline_in_the_working_directory_does_not_break_the_first_line(tmp_path: Path) -> None:
    (tmp_path / "a\nb").mkdir()
    subprocess.run([ETRACE, "run", "-q", "--", "true"], cwd=tmp_path / "a\nb", check=True)
    first, second, *_ = (tmp_path / "a\nb" / ".nfsdb").read_bytes().splitlines()
    assert first == b"INITCWD=" + os.fsencode(tmp_path) + rb"/a\012b"
    assert b"!" in second


def test_an_interrupt_sent_by_a_process_reaches_the_command(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [ETRACE, "run", "-q", "-o", tmp_path, "--", "sh", "-c", "echo up; exec sleep 60"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)  # to etrace alone, as a CI runner does
    assert process.wait(timeout=30) == -signal.SIGINT


def test_a_stopped_job_gives_the_terminal_back(tmp_path: Path) -> None:
    shell = Terminal(["/bin/bash", "--norc", "-i"])
    command = f"{ETRACE} run -o {tmp_path} -- sh -c 'echo up; sleep 2; echo end'"
    os.write(shell.fd, f"{command}\n".encode())
    seen = b""
    while b" etrace  0:0" not in seen:
        seen += os.read(shell.fd, 4096)
    os.write(shell.fd, b"\x1a")
    while b"Stopped" not in seen:
        seen += os.read(shell.fd, 4096)
    assert seen.rindex(b"\x1b[1;10r") > seen.rindex(b"\x1b[1;9r")  # all rows scroll again
    os.write(shell.fd, b"fg; echo status $?; exit\n")
    rest = shell.read()
    assert b"\x1b[1;9r" in rest
    assert b"end" in rest
    assert b"status 0" in rest
