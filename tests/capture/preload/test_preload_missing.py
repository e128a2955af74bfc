# SPDX-License-Identifier: Apache-2.0
"""The preload backend: what is loaded later is reported in time, and what is missing counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import trace_lines
from backends import PRELOAD, Captured, capture, need_tool
from event_programs import DATA

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}
INCOMPLETE = 125
TOOLS = {"gcc": "gcc", "bwrap": "bubblewrap", "unshare": "util-linux"}


@pytest.fixture
def folder(folder: Path) -> Path:
    (folder / "n.c").write_text("int main(void) { return 0; }\n")
    return folder


def run(folder: Path, *command: str, **options: str) -> tuple[Captured, dict[str, object]]:
    path = folder.with_name("stats")
    words = ["--stats", str(path), "--summary"]
    done = capture(command, folder, env=ENV | options, options=words, backend=PRELOAD)
    stats: dict[str, object] = json.loads(path.read_text())
    return done, stats


def opened_before_close(done: Captured, output: Path) -> list[bytes]:
    """Return what the process that wrote `output` last had opened when it closed it."""
    trace = trace_lines.parse(done.trace.read_bytes())
    found: list[bytes] = []
    for upid in {line.upid for line in trace.lines}:
        opened: list[bytes] = []
        fd = -1
        for event in trace_lines.events(trace.of(upid)):
            if event.tag == "Open":
                opened.append(event.strings["FN"])
                if event.strings["FN"] == bytes(output) and event.args["flags"] & os.O_ACCMODE:
                    fd = event.args["fd"]
            elif event.tag == "Close" and event.args["fd"] == fd:
                found, fd = list(opened), -1
    return found


@pytest.mark.parametrize("words", [[], ["dlmopen"]], ids=["dlopen", "dlmopen"])
@pytest.mark.parametrize("flag", ["-m64", "-m32"])
def test_what_a_program_loads_is_reported_before_it_closes_its_output(
    flag: str, words: list[str], folder: Path
) -> None:
    """Also as the linker finds it: by the RUNPATH of the caller."""
    need_tool("gcc", "gcc gcc-multilib")
    (folder / "plugins").mkdir()
    plugin, out = folder / "plugins" / "plugin.so", folder / "out"
    rpath = f"-Wl,-rpath,{plugin.parent}"
    made = ("-shared", "-fPIC", "n.c", "-o", str(plugin)), (str(DATA / "loads.c"), "-ol", rpath)
    for more in made:
        subprocess.run(["gcc", flag, *more], cwd=folder, check=True)
    done, _ = run(folder, "./l", str(out), *words)
    assert done.status == 0, done.stderr
    assert bytes(plugin) in opened_before_close(done, out)


def test_the_linker_plugin_is_reported_before_the_program_is_linked(folder: Path) -> None:
    need_tool("gcc", "gcc")
    done, _ = run(folder, "gcc", "-flto", "-o", "n", "n.c")
    assert done.status == 0, done.stderr
    names = [path.rpartition(b"/")[2] for path in opened_before_close(done, folder / "n")]
    assert b"liblto_plugin.so" in names


SANDBOXES = {
    "unshare": ["unshare", "-Urpfm", "--mount-proc"],
    "old proc": ["unshare", "-pf"],
    "bwrap": ["bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid"],
}


@pytest.mark.root
@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_programs_in_a_pid_namespace_are_counted_and_named(sandbox: str, folder: Path) -> None:
    for tool, package in TOOLS.items():
        need_tool(tool, package)
    done, stats = run(folder, *SANDBOXES[sandbox], "sh", "-c", "gcc -c n.c; true")
    assert done.status == INCOMPLETE
    assert stats["untraced"] == stats["unseen_executions"] == 4
    text, ending, _ = done.stderr.decode().splitlines()
    assert text.startswith("etrace: 4 executions were of programs in another PID or user namespace")
    assert text.endswith("; what they opened and started is not in the trace")
    for name in ("sh", "gcc", "cc1", "as"):
        program = subprocess.check_output(["gcc", f"-print-prog-name={name}"], text=True).strip()
        path = subprocess.check_output(["which", program], text=True).strip()
        assert os.path.realpath(path) in text
    assert ending.endswith(", incomplete")
    pids = {
        line.upid & ((1 << 22) - 1) for line in trace_lines.parse(done.trace.read_bytes()).lines
    }
    assert 1 not in pids


@pytest.mark.root
def test_a_sandbox_that_nothing_is_heard_from_is_reported(folder: Path) -> None:
    need_tool("bwrap", "bubblewrap")
    sandbox = [*SANDBOXES["bwrap"], "--unshare-net"]
    done, stats = run(folder, *sandbox, "gcc", "-c", "n.c")
    assert (done.status, stats["untraced"]) == (INCOMPLETE, 1)
    said = b"etrace: 1 process began in another PID namespace: what happens there is not in the"
    assert done.stderr.startswith(said)


@pytest.mark.root
def test_a_root_directory_without_the_library_gives_no_message_of_the_linker(folder: Path) -> None:
    need_tool("bwrap", "bubblewrap")
    words = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--dev", "/dev"]
    for name in ("lib", "lib64"):
        words += ["--symlink", f"usr/{name}", f"/{name}"]
    words += ["--proc", "/proc", "--tmpfs", "/tmp", "--bind", str(folder), "/work"]
    done, stats = run(folder, "bwrap", *words, "--chdir", "/work", "gcc", "-c", "n.c")
    assert b"ld.so" not in done.stderr
    assert done.stderr.startswith(
        b"etrace: 1 execution was of programs in a root directory, or as a user, without the"
        b" library: /usr/bin/gcc; what they opened and started is not in the trace\n"
    )
    assert (done.status, stats["untraced"]) == (INCOMPLETE, 1)
    assert (folder / "n.o").exists()


def test_a_program_that_makes_its_own_system_calls_is_reported(folder: Path) -> None:
    need_tool("go", "golang-go")
    (folder / "n.c").unlink()
    (folder / "go.mod").write_text("module m\n")
    (folder / "m.go").write_text("package main\n\nfunc main() {}\n")
    more = {"GOCACHE": str(folder.with_name("cache")), "GOFLAGS": "-mod=mod", "HOME": str(folder)}
    done, stats = run(folder, "sh", "-c", "go build -o m; exit $?", **more)
    assert (done.status, stats["untraced"]) == (INCOMPLETE, 1), done.stderr
    said = "etrace: 1 execution was of programs that make their own system calls: /usr/bin/go;"
    assert done.stderr.decode().startswith(said)
    assert (folder / "m").exists()


SENDS = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
name = b"\\0" + os.environb[b"ETRACE_PRELOAD"].partition(b":")[0]
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"/opt/forged", name)
"""


@pytest.mark.root
@pytest.mark.parametrize(("uid", "n"), [(0, 1), (65534, 0)], ids=["own", "stranger"])
def test_a_stranger_adds_no_program_to_those_that_are_missing(
    uid: int, n: int, folder: Path
) -> None:
    done, stats = run(folder, sys.executable, "-c", SENDS, str(uid))
    assert done.stderr.count(b"/opt/forged") == n
    assert (done.status, stats["untraced"]) == (INCOMPLETE if n else 0, n)


@pytest.mark.root
@pytest.mark.parametrize(("script", "n"), [("cp n.c m.c", 2), ("exec gcc -c n.c", 4)])
def test_a_user_namespace_alone_is_counted_too(script: str, n: int, folder: Path) -> None:
    need_tool("unshare", "util-linux")
    done, stats = run(folder, "unshare", "-Ur", "sh", "-c", f"{script}; exit 0")
    assert (done.status, stats["untraced"]) == (INCOMPLETE, n)
    assert b"did not load" not in done.stderr


FLOODS = """
import os, signal, socket, subprocess, sys
name = b"\\0" + os.environb[b"ETRACE_PRELOAD"].partition(b":")[0]
senders = []
for _ in range(8):
    if not (pid := os.fork()):
        os.setuid(65534)
        sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        while True:
            sender.sendto(b"/opt/forged", name)
    senders.append(pid)
done = subprocess.run(["sh", "-c", "for i in $(seq 300); do /bin/true; done"])
for pid in senders:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
sys.exit(done.returncode)
"""


@pytest.mark.root
def test_a_stranger_who_sends_without_end_delays_nothing(folder: Path) -> None:
    done, stats = run(folder, sys.executable, "-c", FLOODS)
    assert (done.status, stats["lost"], stats["untraced"]) == (0, 0, 0), done.stderr
    assert done.stderr.count(b"/opt/forged") == 0


TAKES = """
import os, socket, sys, time
own, (read, write) = os.getpid(), os.pipe()
if not (child := os.fork()):
    if os.fork():  # what takes the names is not a descendant of the collector
        os._exit(0)
    taken = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(30)]
    for fd, sock in enumerate(taken):
        sock.bind(b"\\0/proc/%d/fd/%d" % (own, fd))
    os.write(write, b"taken")
    os.closerange(0, 3)
    while os.path.exists("/proc/%d" % own):
        time.sleep(0.05)
    os._exit(0)
os.waitpid(child, 0)
os.read(read, 5)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_name_that_another_has_taken_is_reported(folder: Path) -> None:
    words = [str(PRELOAD.path()), "-o", str(folder / "t"), "--", "true"]
    done = subprocess.run(
        [sys.executable, "-c", TAKES, *words], cwd=folder, env=ENV, capture_output=True, check=False
    )
    assert b"programs in other namespaces are not counted: socket @/proc/" in done.stderr


def test_a_program_that_ends_by_quick_exit_is_recorded(folder: Path) -> None:
    (folder / "q.c").write_text("#include <stdlib.h>\nint main(void) { quick_exit(0); }\n")
    subprocess.run(["gcc", "-o", "q", "q.c"], cwd=folder, check=True)
    done, stats = run(folder, "sh", "-c", "./q; exit 0")
    assert (done.status, stats["untraced"]) == (0, 0), done.stderr
