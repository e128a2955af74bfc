# SPDX-License-Identifier: Apache-2.0
"""`etrace run --backend strace` records what `--backend ptrace` does, up to its documented limits.

The limits are in docs/capture-strace.md.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import trace_lines
from backends import need_root, need_tool
from event_programs import DATA, SOURCES, head_value, programs

from etrace.capture import strace
from etrace.capture.options import Options
from etrace.capture.strace import StraceBackend
from etrace.errors import CaptureError

# etrace-ptrace sets these when nobody else does
LEAKS = {"ASAN_OPTIONS": "detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent", **LEAKS}
TEMPORARY = re.compile(rb"/(cc|st)[A-Za-z0-9]{6}\b")
PROCESS = re.compile(rb"/proc/\d+\b")
SIZE = re.compile(rb"(fname|forig)size=\d+,")
PIPE = re.compile(rb"pipe:\[\d+\]")
#: docs/capture-strace.md, "Limits": programs of tests/events -> tags of the lines that differ
LINKS_LOOKED_UP_LATER = {"Symlink", "SR", "SR_end"}
DIFFERENT = {
    "chroot": {  # paths are seen from outside
        "CW", "FN", "FO", "LF", "LinkFrom", "New_proc", "Open", "PI", "PP", "RT", "RenameTo", "SL",
        "SR", "Symlink",
    },
    "cloexec": {"Close"},  # FIOCLEX
    "clone": {"Exit"},  # a child with CLONE_UNTRACED
    "comm": {"Comm", "CN"},  # of an exec
    "exec_thread": {"Open", "FN", "FO"},  # strace loses a call after it
    "link": {"LinkFrom", "LF"},  # of links that failed
    "linkat": {"LinkatFrom", "LF"},
    "linkat_fd": {"LinkatFrom", "LF"},
    "rename": {"RenameFrom", "RenameTo", "RF", "RT"},
    "renameat": {"RenameFrom", "RF"},
    "renameat2": {"Rename2From", "RF"},
    "long_path": LINKS_LOOKED_UP_LATER,
    "mount": {"Umount", "MT", *LINKS_LOOKED_UP_LATER},
    "mount_namespace": LINKS_LOOKED_UP_LATER,
}  # fmt: skip
#: strace shows what was mounted inside a chroot (tests/bare is one) from outside of it
FROM_OUTSIDE = {
    "CW", "FN", "FO", "LF", "LT", "LinkFrom", "LinkTo", "MT", "Mount", "New_proc", "Open",
    "PI", "PP", "RF", "RT", "RenameFrom", "RenameTo", "SL", "SR", "Symlink", "Umount",
}  # fmt: skip
#: link targets that are gone or there when the line is converted: in any program, by chance
BY_CHANCE = LINKS_LOOKED_UP_LATER


def etrace(
    backend: str, output: Path, words: list[str], cwd: Path
) -> subprocess.CompletedProcess[bytes]:
    command = [
        str(Path(sys.executable).with_name("etrace")), "run", "--backend", backend,
        "-o", str(output), *words,
    ]  # fmt: skip
    return subprocess.run(command, cwd=cwd, env=ENV, capture_output=True, timeout=120, check=False)


def captured(
    backend: str, folder: Path, output: Path, words: list[str], command: Sequence[str] = ("make",)
) -> dict[str, list[bytes]]:
    """Return the lines of each task of a build of tests/data/tiny_build, without random names."""
    shutil.copytree(DATA / "tiny_build", folder)
    done = etrace(
        backend, output, ["-q", "--no-usage", "--no-stderr", *words, "--", *command], folder
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"etrace:") == 0, done.stderr
    shutil.rmtree(folder)
    trace = trace_lines.parse((output / ".nfsdb").read_bytes())
    tasks = trace_lines.by_task(trace, trace.roots()[0])
    return {name: [_stable(line) for line in lines] for name, lines in tasks.items()}


def _stable(line: bytes) -> bytes:
    line = PROCESS.sub(b"/proc/N", line)
    return PIPE.sub(b"pipe:[N]", TEMPORARY.sub(rb"/\1XXXXXX", line))


@pytest.mark.parametrize("words", [[], ["--env", "--mounts"]], ids=["plain", "all"])
def test_a_build_gives_the_lines_of_ptrace(words: list[str], tmp_path: Path) -> None:
    need_tool("strace", "strace")
    need_tool("gcc", "gcc")
    folder = tmp_path.resolve() / "build"
    wanted = captured("ptrace", folder, tmp_path / "ptrace", words)
    got = captured("strace", folder, tmp_path / "strace", words)
    assert len(wanted) > 30
    if diff := trace_lines.difference(wanted, got):
        pytest.fail(diff[:4000], pytrace=False)


def _without_sizes(tasks: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
    """Return lines without the sizes of names: bwrap opens its own /proc/PID, of any length."""
    return {name: [SIZE.sub(b"", line) for line in lines] for name, lines in tasks.items()}


SANDBOXES = {
    "unshare": ["unshare", "-Urpfm", "--mount-proc", "sh", "-c", 'cd "$1" && make', "sh"],
    "bwrap": ["bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "make", "-C"],
}


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_build_in_a_pid_namespace_gives_the_lines_of_ptrace(sandbox: str, tmp_path: Path) -> None:
    for tool, package in {"strace": "strace", "gcc": "gcc", "bwrap": "bubblewrap"}.items():
        need_tool(tool, package)
    folder = tmp_path.resolve() / "build"
    command = [*SANDBOXES[sandbox], str(folder)]
    wanted = captured("ptrace", folder, tmp_path / "ptrace", [], command)
    got = captured("strace", folder, tmp_path / "strace", [], command)
    assert len(wanted) > 30
    diff = trace_lines.difference(_without_sizes(wanted), _without_sizes(got))
    assert tags_of(diff) <= BY_CHANCE, diff[:4000]


def tags_of(diff: str) -> set[str]:
    """Return the tags of the lines that only one side has, wherever the diff shows them."""
    lines = diff.split("\n")[2:]
    lost = Counter(line[1:] for line in lines if line[:1] == "-")
    more = Counter(line[1:] for line in lines if line[:1] == "+")
    only = (lost - more) + (more - lost)
    return {re.split(r"[|\[]", line.partition("!")[2])[0] for line in only}


@pytest.mark.root
@pytest.mark.parametrize("program", [each for each in programs() if "64/" in str(each)])
def test_strace_records_what_a_program_says(
    program: str, reachable: Path, built: Path, tmp_path: Path
) -> None:
    need_tool("strace", "strace")
    need_root()
    path, name = built / program, Path(program).name
    options = head_value(SOURCES / f"{name}.c", "options").split()
    folder = reachable / "run" / name
    folder.mkdir(parents=True)
    done = etrace("strace", tmp_path / "out", ["-q", *options, "--", str(path)], folder)
    trace = trace_lines.parse((tmp_path / "out" / ".nfsdb").read_bytes())
    diff = trace_lines.compare_run(done.stdout, trace, os.fsencode(path), has_written=False)
    different = tags_of(diff)
    if name in ("mount", "mount_namespace") and f"{reachable}/" in re.sub(r"\|/tmp/", "|", diff):
        assert different <= FROM_OUTSIDE, diff
    elif name not in DIFFERENT:
        assert different <= BY_CHANCE, diff
    else:
        assert different <= DIFFERENT[name] | BY_CHANCE, diff
        assert different or DIFFERENT[name] == BY_CHANCE, f"{name}: no longer a limit"


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 7", 7), ("kill -SEGV $$", -signal.SIGSEGV), ("nosuch", 127), ("true", 0)],
)
def test_the_status_is_that_of_the_command(script: str, status: int, tmp_path: Path) -> None:
    need_tool("strace", "strace")
    words = ["-q", "--", "nosuch"] if script == "nosuch" else ["-q", "--", "sh", "-c", script]
    done = etrace("strace", tmp_path, words, tmp_path)
    assert done.returncode == status
    assert (tmp_path / ".nfsdb").exists() == (script != "nosuch")
    assert (b"no such command in PATH" in done.stderr) == (script == "nosuch")


def test_a_signal_goes_to_the_command_and_the_trace_is_written(tmp_path: Path) -> None:
    need_tool("strace", "strace")
    script = "trap 'exit 9' TERM; echo ready; while :; do read -t 1 x; done"
    command = [
        str(Path(sys.executable).with_name("etrace")), "run", "--backend", "strace",
        "-o", str(tmp_path), "--", "bash", "-c", script,
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 9
    assert b"the build was interrupted" in said
    assert b"Exit|status=9" in (tmp_path / ".nfsdb").read_bytes()


def test_an_older_trace_is_kept_and_the_summary_counts(tmp_path: Path) -> None:
    need_tool("strace", "strace")
    (tmp_path / ".nfsdb").write_bytes(b"older")
    done = etrace("strace", tmp_path, ["--", "true"], tmp_path)
    assert (tmp_path / ".nfsdb.old").read_bytes() == b"older"
    assert b"1 process, 1 command and" in done.stderr
    assert (tmp_path / ".nfsdb").stat().st_mode & 0o777 == 0o600


def test_a_missing_strace_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(CaptureError, match="strace is not installed") as raised:
        strace.locate()
    assert "apt-get install strace" in raised.value.hint
    probe = StraceBackend().probe()
    assert (probe.works, probe.reason) == (False, "strace is not installed")


def test_an_old_strace_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "strace"
    fake.write_text("#!/bin/sh\necho 'strace -- version 4.26'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    obstacle = StraceBackend().obstacle()
    assert obstacle is not None
    assert obstacle.reason == f"{fake}: version 4.26, and --seccomp-bpf came with 5.3"


def test_options_become_calls_to_trace() -> None:
    plain = " ".join(strace.arguments(Options("t", "s"), "log", (5, 8)))
    assert "pidns" not in plain
    assert "mount" not in plain
    assert " -v " not in plain
    everything = Options("t", "s", env=True, mounts=True, thread_names=True)
    words = strace.arguments(everything, "log", (5, 9))
    assert "--pidns-translation" in words
    assert "-v" in words
    (traced,) = (word for word in words if word.startswith("trace="))
    assert {"?mount", "?umount", "?umount2", "?prctl"} <= set(traced.partition("=")[2].split(","))


def test_it_works_on_this_machine() -> None:
    need_tool("strace", "strace")
    probe = StraceBackend().probe()
    assert probe.works, f"{probe.reason}; {probe.hint}"


def test_response_files_of_compilers_that_are_not_saved_are_counted(tmp_path: Path) -> None:
    need_tool("strace", "strace")
    need_tool("gcc", "gcc")
    (tmp_path / "x.c").write_text("int x;\n")
    (tmp_path / "x.rsp").write_text("-O1\n")
    command = ["--", "gcc", "@x.rsp", "-S", "x.c"]
    done = etrace("strace", tmp_path, command, tmp_path)
    assert b"1 response file was not saved (@FILE of compilers)" in done.stderr
    off = etrace("strace", tmp_path, ["--no-response-files", *command], tmp_path)
    other = etrace("strace", tmp_path, ["--", "echo", "@x.rsp"], tmp_path)
    assert b"response file" not in off.stderr + other.stderr


def test_that_usage_is_not_reported_is_said_once(tmp_path: Path) -> None:
    need_tool("strace", "strace")
    shown = b"strace does not record what processes used (CPU time, memory, I/O)"
    command = ["--", "sh", "-c", "true; /bin/true; /bin/true"]
    assert etrace("strace", tmp_path, command, tmp_path).stderr.count(shown) == 1
    assert shown not in etrace("strace", tmp_path, ["--no-usage", *command], tmp_path).stderr
    assert b"!Usage|" not in (tmp_path / ".nfsdb").read_bytes()
