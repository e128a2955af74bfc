# SPDX-License-Identifier: Apache-2.0
"""The Python side of the BPF backend: when it is tried, what prevents it, and a capture."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from backends import BPF, need_root
from trying import until

from etrace.capture import features, registry
from etrace.capture.bpf import backend
from etrace.capture.bpf.backend import BpfBackend
from etrace.errors import CaptureError

ETRACE = str(Path(sys.executable).parent / "etrace")
BOTH = (1 << 38) | (1 << 39)
NOBODY = 65534


def attribute(mask: int, revision: int = 2) -> bytes:
    """Return what setcap writes beside a file: permitted and effective, nothing inheritable."""
    halves = (mask & 0xFFFFFFFF, 0, mask >> 32, 0)[: 2 if revision == 1 else 4]
    return b"".join(n.to_bytes(4, "little") for n in (revision << 24 | 1, *halves))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let etrace look for its C program in an empty directory; return the program's path."""
    monkeypatch.setattr(backend, "libexec", lambda name: str(tmp_path / name))
    return tmp_path / backend.PROGRAM


def script(place: Path, text: str) -> None:
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)


def status(monkeypatch: pytest.MonkeyPatch, uid: int, **fields: str) -> None:
    """Give this process a user and fields of /proc/self/status."""
    known = {"CapBnd": "1ffffffffff", "CapAmb": "0", "NoNewPrivs": "0"} | fields
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(backend, "status_field", known.__getitem__)


# ---- rights ----


@pytest.mark.parametrize(
    ("uid", "fields", "file", "is_enough"),
    [
        (0, {}, None, True),
        (0, {"CapBnd": f"{BOTH:x}"}, None, True),
        (0, {"CapBnd": f"{1 << 38:x}"}, None, False),
        (0, {"CapBnd": f"{1 << 21:x}"}, None, True),
        (1000, {}, None, False),
        (1000, {"CapAmb": f"{BOTH:x}"}, None, True),
        (1000, {}, attribute(BOTH), True),
        (1000, {}, attribute(BOTH, revision=3) + bytes(4), True),
        (1000, {}, attribute(1 << 39), False),
        (1000, {}, attribute(1 << 21, revision=1), True),
        (1000, {"NoNewPrivs": "1"}, attribute(BOTH), False),
        (1000, {"CapBnd": "0"}, attribute(BOTH), False),
    ],
)
def test_rights_come_from_root_from_the_file_or_from_ambient_capabilities(
    uid: int, fields: dict[str, str], file: bytes | None, is_enough: bool,
    place: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def getxattr(path: str, name: str) -> bytes:
        assert (path, name) == (str(place), "security.capability")
        if file is None:
            raise OSError
        return file

    script(place, "exit 0")
    status(monkeypatch, uid, **fields)
    monkeypatch.setattr(os, "getxattr", getxattr)
    assert backend.is_enough(backend.held()) is is_enough
    assert BpfBackend().is_out_of_question() is not is_enough


def test_a_user_without_rights_gets_both_ways_to_have_them(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(place, "exit 0")
    status(monkeypatch, 1000)
    obstacle = BpfBackend().obstacle()
    assert obstacle is not None
    assert obstacle.expected
    assert obstacle.hint.startswith("sudo etrace run ..., or let a group use it")
    assert obstacle.hint.endswith(f" && sudo setcap cap_bpf,cap_perfmon+ep {place}")
    status(monkeypatch, 0, CapBnd="0")
    obstacle = BpfBackend().obstacle()
    assert obstacle is not None
    assert obstacle.hint == "start the container with --cap-add BPF --cap-add PERFMON"


def test_without_proc_the_program_says_what_is_missing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_proc(_name: str) -> str:
        raise FileNotFoundError

    script(place, "exit 0")
    monkeypatch.setattr(backend, "status_field", no_proc)
    assert BpfBackend().obstacle() is None


# ---- the program ----


def test_an_etrace_built_without_the_program_says_what_to_install(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "BACKENDS", (BpfBackend(),))
    with pytest.raises(CaptureError) as caught:
        registry.choose("bpf", pytest.fail)
    assert caught.value.message == f"{place} was not built"
    assert caught.value.hint == features.BPF.hint
    assert caught.value.hint.startswith("apt-get install clang llvm bpftool libbpf-dev ")


def test_a_program_of_a_group_names_the_group(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(place, "exit 0")
    place.chmod(0o650)
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    obstacle = BpfBackend().obstacle()
    assert obstacle is not None
    assert obstacle.reason == f"only root and group {place.group()} may run {place}"
    assert obstacle.hint.startswith(f'sudo usermod -aG {place.group()} "$USER" and log in again')


def test_the_backend_is_probed_by_loading_the_programs(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status(monkeypatch, 0)
    script(place, '[ "$*" = --probe ]')
    assert BpfBackend().probe().works
    script(place, "echo 'etrace: BPF programs cannot be used: too old' >&2; exit 125")
    probe = BpfBackend().probe()
    assert (probe.works, probe.expected) == (False, True)
    assert probe.reason == "BPF programs cannot be used: too old"
    script(place, "exit 125")
    assert BpfBackend().probe().reason == "etrace-bpf ended with status 125"


# ---- auto ----


class Other(BpfBackend):
    """A backend that always works."""

    name = "other"

    def obstacle(self) -> None:
        """Nothing is in the way."""


def choose_among(monkeypatch: pytest.MonkeyPatch, *backends: BpfBackend) -> str:
    monkeypatch.setattr(registry, "COMPLETE", backends)
    said: list[str] = []
    chosen = registry.choose(registry.AUTO, said.append).name
    assert said == []
    return chosen


def test_auto_takes_bpf_where_the_rights_are_there(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(place, "exit 1")  # it is not asked: its program lets ptrace take over
    status(monkeypatch, 1000)
    assert choose_among(monkeypatch, BpfBackend(), Other()) == "other"
    status(monkeypatch, 0)
    assert choose_among(monkeypatch, BpfBackend(), Other()) == "bpf"


def test_auto_tries_the_module_then_bpf_then_ptrace() -> None:
    assert [each.name for each in registry.COMPLETE] == ["kmod", "bpf", "ptrace"]


# ---- captures ----


def run(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ETRACE, "run", "--backend", "bpf", "-o", where, *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.root
def test_etrace_run_captures_with_bpf(tmp_path: Path) -> None:
    need_root()
    done = run(tmp_path, "--stdout", "--", "sh", "-c", "echo said; /bin/true; exit 7")
    assert (done.returncode, done.stdout) == (7, "said\n")
    assert "etrace: 2 processes, 2 commands and " in done.stderr
    stats = json.loads((tmp_path / ".nfsdb.stats").read_text())
    assert (stats["backend"], stats["lost"], stats["exit_status"]) == ("bpf", 0, 7)
    assert b"OU|said\n" in (tmp_path / ".nfsdb").read_bytes()


STORM = """
import os, signal, sys
reader = os.getppid()
os.kill(reader, signal.SIGSTOP)
for _ in range(5000):
    os.close(os.open("/dev/null", os.O_RDONLY))
os.kill(reader, signal.SIGCONT)
"""


@pytest.mark.root
def test_a_full_buffer_delays_nothing_and_every_loss_is_counted(tmp_path: Path) -> None:
    need_root()
    storm = [sys.executable, "-S", "-c", STORM]
    done = run(tmp_path, "--buffer-size", "256", "--", *storm)
    stats = json.loads((tmp_path / ".nfsdb.stats").read_text())
    trace = (tmp_path / ".nfsdb").read_bytes()
    assert done.returncode == 125, done.stderr
    assert f"{stats['lost']} events were lost: the kernel's buffer was full" in done.stderr
    n_seen = trace.count(b"FN|/dev/null\n")
    assert 0 < n_seen < 5000
    assert 5000 - n_seen <= stats["lost"] <= 2 * (5000 - n_seen) + 1
    assert run(tmp_path, "--", *storm).returncode == 0  # it fits into the usual buffer


def test_a_backend_without_a_buffer_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [ETRACE, "run", "-o", tmp_path, "--backend", "ptrace", "--buffer-size", "64", "true"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--buffer-size: ptrace has no buffer in the kernel" in done.stderr


@pytest.mark.root
def test_a_capture_inside_a_capture_disturbs_neither(tmp_path: Path) -> None:
    need_root()
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    command = [ETRACE, "run", "-q", "--backend", "bpf", "-o", inner, "--", "cat", "/etc/hostname"]
    assert run(outer, "-q", "--", *map(str, command)).returncode == 0
    for folder in (inner, outer):
        assert b"FN|/etc/hostname\n" in (folder / ".nfsdb").read_bytes()


@pytest.mark.root
def test_where_the_kernel_refuses_the_programs_ptrace_takes_over(tmp_path: Path) -> None:
    need_root()
    without_types = 'mount -t tmpfs none /sys && exec "$@"'
    shell: list[str | Path] = ["unshare", "--mount", "sh", "-c", without_types, "sh"]
    auto: list[str | Path] = [
        ETRACE,
        "run",
        "-o",
        tmp_path,
        "--buffer-size",
        "4096",
        "--",
        "sh",
        "-c",
        "exit 7",
    ]
    done = subprocess.run([*shell, *auto], capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    assert json.loads((tmp_path / ".nfsdb.stats").read_text())["backend"] == "ptrace"
    named = [*auto[:4], "--backend", "bpf", *auto[4:]]
    done = subprocess.run([*shell, *named], capture_output=True, text=True, check=False)
    assert done.returncode == 125
    assert "BPF programs cannot be used: the kernel has no type information" in done.stderr


@pytest.mark.root
def test_the_end_of_the_command_by_a_signal_is_that_of_etrace(tmp_path: Path) -> None:
    need_root()
    assert run(tmp_path, "-q", "--", "sh", "-c", "kill -SEGV $$").returncode == -signal.SIGSEGV


@pytest.fixture
def granted(public: Path) -> Callable[[int], list[str]]:
    """Return a command line of a copy of the program that has capabilities."""

    def grant(mask: int) -> list[str]:
        copy = public / "etrace-bpf"
        shutil.copy(BPF.path(), copy)
        copy.chmod(0o755)
        os.setxattr(copy, "security.capability", attribute(mask))
        return [str(copy)]

    return grant


@pytest.mark.root
def test_a_program_file_with_two_capabilities_is_enough_for_a_user(
    granted: Callable[[int], list[str]], public: Path
) -> None:
    need_root()
    work = public / "work"
    work.mkdir()
    os.chown(work, NOBODY, NOBODY)

    def start(mask: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*granted(mask), "-o", work / "trace", "--", "/bin/true"], cwd=work,
            user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert start(1 << 39).returncode == 125
    done = start(BOTH)
    assert done.returncode == 0, done.stderr
    assert b"!New_proc|" in (work / "trace").read_bytes()


@pytest.fixture
def everybodys(public: Path) -> Path:
    """Return a folder that every user may write to."""
    need_root()
    folder = public / "work"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def start_as(user: int, words: list[str], work: Path) -> subprocess.Popen[str]:
    """Start a capture of a command that waits for its input to end."""
    return subprocess.Popen(
        [*words, "-o", str(work / f"trace{time.monotonic_ns()}"), "--", "cat"], cwd=work,
        user=user, group=user, extra_groups=[], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def wait_for_command(capture: subprocess.Popen[str]) -> None:
    """Wait until a capture has started its command, or has ended."""
    children = Path(f"/proc/{capture.pid}/task/{capture.pid}/children")
    until(lambda: capture.poll() is not None or children.read_text())


@pytest.mark.root
def test_users_have_two_captures_each_and_four_a_machine(
    granted: Callable[[int], list[str]], everybodys: Path
) -> None:
    """Each makes every system call of the machine slower, and takes memory of the kernel."""
    words, refused, running = granted(BOTH), [], []
    try:
        for user in (NOBODY, NOBODY, NOBODY, 12345, 12345, 12345, 12346):
            capture = start_as(user, words, everybodys)
            wait_for_command(capture)
            if capture.poll() is None:
                running.append(capture)
            else:
                refused.append(capture.communicate()[1])
        assert len(running) == 4
        assert [text.count("2 captures of yours") for text in refused] == [1, 1, 0]
        assert "4 captures of all users run already, the most without root" in refused[2]
        running.pop().communicate()
        again = start_as(12346, words, everybodys)
        assert again.communicate()[1] == ""
        assert again.returncode == 0
    finally:
        for capture in running:
            capture.communicate()


@pytest.mark.root
def test_a_lock_that_may_hide_captures_counts_as_all_of_them(
    granted: Callable[[int], list[str]], everybodys: Path
) -> None:
    words = granted(BOTH)
    with Path(words[0]).open("rb") as program:
        fcntl.lockf(program, fcntl.LOCK_SH, 0, 0)
        done = start_as(NOBODY, words, everybodys)
        assert "captures of yours run already" in done.communicate()[1]
    assert start_as(NOBODY, words, everybodys).communicate()[1] == ""


@pytest.mark.root
def test_without_root_the_buffer_has_a_limit(
    granted: Callable[[int], list[str]], everybodys: Path
) -> None:
    done = start_as(NOBODY, [*granted(BOTH), "--buffer-size", str(1 << 20)], everybodys)
    assert "etrace: --buffer-size: 65536 KiB is the most without root" in done.communicate()[1]
    assert done.returncode == 0


@pytest.mark.root
def test_the_build_gets_the_variables_that_the_dynamic_linker_removes(
    granted: Callable[[int], list[str]], public: Path
) -> None:
    need_root()
    work = public / "work"
    work.mkdir()
    os.chown(work, NOBODY, NOBODY)
    variables = {"A": "1", "LD_LIBRARY_PATH": "/lib", "TMPDIR": str(work), "EMPTY": ""}
    done = subprocess.run(
        [*granted(BOTH), "-o", work / "trace", "--", "/usr/bin/env"], cwd=work, env=variables,
        user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(f"{k}={v}" for k, v in variables.items())


@pytest.mark.root
@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o711])
def test_what_a_user_may_not_watch_is_left_out(
    granted: Callable[[int], list[str]], public: Path, mode: int
) -> None:
    need_root()
    work, program = public / "work", public / "env"
    work.mkdir()
    os.chown(work, NOBODY, NOBODY)
    shutil.copy("/usr/bin/env", program)
    program.chmod(mode)
    script = f"{program} cat /etc/hostname; cat /etc/hosts"
    done = subprocess.run(
        [*granted(BOTH), "-o", work / "trace", "--stats", work / "stats", "--", "sh", "-c", script],
        cwd=work, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "etrace: 1 program that you may not watch (set-uid, " in done.stderr
    trace = (work / "trace").read_bytes()
    assert b"FN|/etc/hosts\n" in trace
    assert b"FN|/etc/hostname\n" not in trace
    assert b"PP|%s\n" % bytes(program) not in trace
    assert json.loads((work / "stats").read_text())["privileged"] == 1
