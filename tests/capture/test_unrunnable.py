# SPDX-License-Identifier: Apache-2.0
"""A command that cannot run: every backend says the same, and ends as a shell does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from backends import names_without_module, need_tool

ETRACE = Path(sys.executable).with_name("etrace")
BACKENDS = names_without_module()
LOADER = "/lib/ld-musl-none.so.1"
#: e_machine of ELF, at byte 18: SPARC, which no kernel here runs
FOREIGN = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\x2b\x00" + bytes(100)


def script(path: Path, text: str | bytes, mode: int = 0o755) -> None:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)


@pytest.fixture
def files(folder: Path) -> Path:
    """Make one file of each kind that cannot run."""
    script(folder / "lost", "#!/no/such/tool -x\n")
    script(folder / "over", f"#! {folder}/lost\n")
    script(folder / "returns", "#!/bin/sh\r\necho\r\n")
    script(folder / "old_mac", "#!/bin/sh\recho\r")
    script(folder / "of_folder", "#!/etc\n")
    script(folder / "of_data", f"#!{folder}/data\n")
    script(folder / "data", "text\n", 0o644)
    script(folder / "foreign", FOREIGN)
    script(folder / "windows", b"MZ\x90\0\3\0\0\0\n")
    (folder / "dangling").symlink_to("gone")
    return folder


def run(backend: str, folder: Path, *words: str) -> tuple[int, str]:
    """Return the status and the messages of a build that leaves no trace."""
    done = subprocess.run(
        [ETRACE, "run", "-q", "--backend", backend, "--", *words], cwd=folder, text=True,
        capture_output=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert not list(folder.glob(".nfsdb*"))
    return done.returncode, done.stderr


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("name", "status", "parts"),
    [
        ("lost", 127, ["interpreter '/no/such/tool' is missing", "first line of './lost'"]),
        ("over", 127, ["interpreter '/no/such/tool' of its interpreter '", "lost' is missing"]),
        ("returns", 127, ["'/bin/sh' ends with a carriage return (\\r)", r"s/\r$//' ./returns"]),
        ("old_mac", 127, ["'/bin/sh' ends with a carriage return", "dos2unix"]),
        ("of_folder", 126, ["its interpreter '/etc' is a directory"]),
        ("of_data", 126, ["its interpreter '", "/data' is not executable", "chmod +x"]),
        ("data", 126, ["it is not executable", "chmod +x ./data"]),
        ("foreign", 126, ["a program for sparc64, and this machine is"]),
        ("windows", 126, ["it is a program for Windows", "wine"]),
        ("dangling", 127, ["it is a link to 'gone', which is missing"]),
        ("lost/x", 126, ["Not a directory"]),
        ("", 126, ["it is a directory"]),
        ("nothing", 127, ["No such file or directory"]),
    ],
)
def test_the_file_to_blame_is_named(
    name: str, status: int, parts: list[str], backend: str, files: Path
) -> None:
    code, said = run(backend, files, f"./{name}")
    assert (code, [part for part in parts if part not in said]) == (status, []), said


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_dynamic_loader_of_a_binary_is_named(backend: str, folder: Path) -> None:
    need_tool("gcc", "gcc")
    (folder / "a.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(
        ["gcc", f"-Wl,--dynamic-linker={LOADER}", "a.c", "-o", "a"], cwd=folder, check=True
    )
    script(folder / "by", f"#!{folder}/a\n")
    code, said = run(backend, folder, "./a")
    assert (code, f"its dynamic loader '{LOADER}' is missing" in said) == (127, True)
    assert "musl: install it" in said
    code, said = run(backend, folder, "./by")
    assert (code, f"dynamic loader '{LOADER}' of its interpreter" in said) == (127, True)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["make all"], "make all"),
        (["CC=gcc make"], "env CC=gcc make"),
        (["CC=gcc", "make", "a b"], "env CC=gcc make 'a b'"),
        (["make a | tee b"], "sh -c 'make a | tee b'"),
        (["make>log"], "sh -c 'make>log'"),
        (["make&&make"], "sh -c 'make&&make'"),
        (["cd x; make"], "sh -c 'cd x; make'"),
        (["cd", "a b"], "sh -c 'cd '\\''a b'\\'' && make'"),
        ([".", "./env.sh"], "sh -c '. ./env.sh && make'"),
        (["source", "env.sh"], "bash -c 'source env.sh && make'"),
        (["export", "A=1"], "sh -c 'export A=1 && make'"),
        (["ulimit", "-n", "9"], "sh -c 'ulimit -n 9 && make'"),
        (["umask", "2"], "sh -c 'umask 2 && make'"),
        (["set", "-e"], "sh -c 'set -e && make'"),
        (["exec", "make"], "sh -c 'exec make'"),
        (["eval", "make x"], "sh -c 'make x'"),
        (["ll"], "bash -i -c ll"),
        (["local_tool"], "./local_tool"),
    ],
)
def test_words_for_a_shell_have_a_cure(
    words: list[str], cure: str, backend: str, folder: Path
) -> None:
    script(folder / "local_tool", "#!/bin/sh\n")
    code, said = run(backend, folder, *words)
    assert (code, f"etrace run -- {cure}\n" in said) == (127, True), said


def test_time_without_a_program_of_that_name_is_the_shells(folder: Path) -> None:
    done = subprocess.run(
        [ETRACE, "run", "--backend", "ptrace", "--", "time", "make"], cwd=folder, text=True,
        capture_output=True, check=False, env={"PATH": str(folder)},
    )  # fmt: skip
    assert (done.returncode, "-- bash -c 'time make'\n" in done.stderr) == (127, True)


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "strace"])
def test_a_script_without_a_first_line_runs_as_in_a_shell(backend: str, folder: Path) -> None:
    script(folder / "plain", "exit 7\n")
    command = [str(ETRACE), "run", "-q", "--backend", backend, "--", "./plain"]
    assert subprocess.run(command, cwd=folder, check=False).returncode == 7


def test_strace_names_the_shell_for_it(folder: Path) -> None:
    need_tool("strace", "strace")
    script(folder / "plain", "exit 7\n")
    code, said = run("strace", folder, "./plain")
    assert (code, "etrace run -- sh ./plain\n" in said) == (126, True)


def test_a_pipe_in_the_place_of_a_command_is_not_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe", 0o755)
    code, said = run("ptrace", folder, "./pipe")
    assert (code, "it is not a regular file" in said) == (126, True)
