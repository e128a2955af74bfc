# SPDX-License-Identifier: Apache-2.0
"""Compilers are asked in a scratch directory, and only when that is safe."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import trying

from etrace.postprocess.compilations import probe, trusted
from etrace.postprocess.compilations.compiler_questions import allowed_options
from etrace.postprocess.compilations.probe import Prober, Question
from etrace.postprocess.compilations.trusted import UntrustedError, trusted_compiler


@pytest.fixture
def safe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that only this user can write, all along its path; who tests counts as root."""
    monkeypatch.setattr(trusted, "OWNERS", {0, os.geteuid()})
    base = "/run" if os.geteuid() == 0 else Path.home()
    path = Path(tempfile.mkdtemp(prefix="etrace-test-", dir=base))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def put_compiler(directory: Path, body: str = "") -> Question:
    """A compiler that counts its calls in a file beside it, and says where it ran."""
    path = directory / "gcc"
    path.write_text(
        f"""#!/bin/sh
echo x >> {directory}/calls
pwd > {directory}/cwd
env > {directory}/env
{body}
exec >&2
echo '#include "..." search starts here:'
echo '#include <...> search starts here:'
echo ' /opt/include'
echo 'End of search list.'
"""
    )
    path.chmod(0o755)
    return Question(os.fsencode(path), "c", (b"-m32",))


def calls(directory: Path) -> int:
    path = directory / "calls"
    return len(path.read_text().split()) if path.exists() else 0


def ask(question: Question, built_ns: int = 0) -> tuple[bytes, ...] | None:
    prober = Prober(1, lambda _text: None, built_ns)
    return prober.ask([question], lambda *_: None).get(question)


@pytest.mark.parametrize(("binary", "language"), [("gcc", "c"), ("g++", "c++"), ("clang", "c")])
def test_the_answer_is_what_the_compiler_says(binary: str, language: str) -> None:
    path = f"/usr/bin/{binary}"
    done = subprocess.run(
        [path, "-E", "-v", "-x", language, "/dev/null"], capture_output=True, check=True, text=True
    )
    shown = done.stderr.partition("search starts here:\n")[2].partition("End of search list.")[0]
    expected = tuple(line[1:].encode() for line in shown.splitlines() if line.startswith(" "))
    assert expected
    question = Question(path.encode(), language, ())
    assert ask(question) == expected


def test_options_change_the_answer() -> None:
    question = Question(b"/usr/bin/g++", "c++", (b"-nostdinc++",))
    found = ask(question) or ()
    assert b"/usr/include" in found
    assert b"/usr/include/c++/12" not in found


def test_a_compiler_runs_in_an_empty_directory_with_a_clean_environment(
    tmp_path: Path, safe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCC_EXEC_PREFIX", "/tmp/evil")
    monkeypatch.chdir(tmp_path)
    question = put_compiler(safe)
    ask(question)
    cwd = (safe / "cwd").read_text().strip()
    names = {line.partition("=")[0] for line in (safe / "env").read_text().splitlines()}
    assert cwd != str(tmp_path)
    assert not Path(cwd).exists()
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        "PATH",
        "LC_ALL",
        "TMPDIR",
        "CLANG_NO_DEFAULT_CONFIG",
    }


@pytest.mark.parametrize(
    ("given", "handed_on"),
    [
        ([], ()),
        ([b"-m32", b"-pthread"], (b"-m32", b"-pthread")),
        ([b"-std=gnu++17"], (b"-std=gnu++17",)),
        ([b"--std", b"c99"], (b"-std=c99",)),
        ([b"-target", b"aarch64-linux-gnu"], (b"--target=aarch64-linux-gnu",)),
        ([b"-isysroot", b"../usr"], (b"-isysroot", b"/usr")),
        ([b"--sysroot=/usr/."], (b"--sysroot=/usr",)),
    ],
)
def test_known_options_are_handed_on(given: list[bytes], handed_on: tuple[bytes, ...]) -> None:
    assert allowed_options(given, b"/etc") == handed_on


@pytest.mark.parametrize(
    "given",
    [
        [b"--target=/tmp/evil/x"],  # clang reads TARGET-clang.cfg, which may load a plugin
        [b"-target", b"../x"],
        [b"-target", b"-fplugin=/tmp/x"],
        [b"-std=c99\n-B/tmp"],
        [b"--target="],
        [b"-target"],
        [b"-B/tmp/evil"],
        [b"-B", b"/tmp/evil"],
        [b"-specs=/tmp/x"],
        [b"-fplugin=/tmp/x.so"],
        [b"-wrapper", b"/tmp/x"],
        [b"--config", b"/tmp/x"],
        [b"-resource-dir", b"/usr/lib"],
        [b"--gcc-toolchain=/usr"],
        [b"@/tmp/x"],
        [b"-m32", b"word"],
        [b"-isysroot", b"/etc/passwd"],
        [b"--sysroot=/no/such"],
        [b"--sysroot="],
    ],
)
def test_a_command_with_any_other_option_is_not_asked_about(given: list[bytes]) -> None:
    assert allowed_options(given, b"/etc") is None


def test_a_sysroot_that_somebody_else_could_change_is_not_handed_on(tmp_path: Path) -> None:
    assert allowed_options([b"--sysroot=" + os.fsencode(tmp_path)], b"/") is None


def test_what_is_run_is_reported_before_and_what_is_not_with_the_reason(safe: Path) -> None:
    reports: list[str] = []
    question, gone = put_compiler(safe), Question(b"/no/such/gcc", "c", ())
    Prober(1, reports.append).ask([question, gone, gone, question], lambda *_: None)
    assert reports == [
        "does not run /no/such/gcc: /no/such/gcc: does not exist",
        f"runs {safe}/gcc -m32 -E -v -x c /dev/null",
    ]
    assert calls(safe) == 1


@pytest.mark.parametrize("name", ["perl", "sh", "ccache", "cc1", "gccx", "python3.11"])
def test_a_program_without_the_name_of_a_compiler_is_not_run(safe: Path, name: str) -> None:
    put_compiler(safe)
    (safe / "gcc").rename(safe / name)
    (safe / "gcc").symlink_to(name)  # what it is called does not count, nor does argv[0]
    with pytest.raises(UntrustedError, match="not a compiler that etrace may run"):
        trusted_compiler(os.fsencode(safe / "gcc"))
    assert ask(Question(os.fsencode(safe / "gcc"), "c", ())) is None
    assert calls(safe) == 0


def test_the_file_itself_is_run_whatever_led_to_it(tmp_path: Path, safe: Path) -> None:
    put_compiler(safe)
    (tmp_path / "perl").symlink_to(safe / "gcc")
    assert trusted_compiler(os.fsencode(tmp_path / "perl")) == safe / "gcc"


def test_a_compiler_that_changed_after_the_build_is_not_asked(safe: Path) -> None:
    question = put_compiler(safe)
    changed_ns = (safe / "gcc").stat().st_ctime_ns
    assert ask(question, changed_ns - 1) is None
    assert calls(safe) == 0
    assert ask(question, changed_ns) == (b"/opt/include",)


def make_file_writable(path: Path) -> None:
    path.chmod(0o775)


def make_directory_writable(path: Path) -> None:
    path.parent.chmod(0o777)


def give_file_away(path: Path) -> None:
    os.chown(path, 12345, -1)


def give_directory_away(path: Path) -> None:
    os.chown(path.parent, 12345, -1)


@pytest.mark.root
@pytest.mark.parametrize(
    "spoil", [make_file_writable, make_directory_writable, give_file_away, give_directory_away]
)
def test_what_somebody_else_could_have_put_there_is_not_run(safe: Path, spoil: object) -> None:
    question = put_compiler(safe)
    assert callable(spoil)
    spoil(safe / "gcc")
    assert ask(question) is None
    assert calls(safe) == 0


def test_a_compiler_of_the_user_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_compiler(tmp_path)
    monkeypatch.setattr(trusted, "OWNERS", ())
    with pytest.raises(UntrustedError, match="gcc does not belong to root"):
        trusted_compiler(os.fsencode(tmp_path / "gcc"))


@pytest.mark.parametrize(
    "name", [b"/no/such/gcc", b"gcc", b"/etc/passwd", b"/usr/bin", b"/a\0b", b""]
)
def test_what_is_no_program_has_no_answer(name: bytes) -> None:
    assert ask(Question(name, "c", ())) is None


def test_a_compiler_that_hangs_is_ended_with_its_children(safe: Path) -> None:
    question = put_compiler(safe, body=f"sleep 1000 & echo $! > {safe}/child; wait")
    command = probe.command_line(question, safe / "gcc")
    assert probe.run_compiler(command, timeout_seconds=0.5) is None
    child = int((safe / "child").read_text())
    trying.until(lambda: has_ended(child))


def has_ended(pid: int) -> bool:
    """Whether a process is gone or waits for its parent to take note."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_an_answer_without_an_end_is_none() -> None:
    assert probe.search_list(b"#include <...> search starts here:\n /usr/include\n") is None
    assert probe.search_list(b"gcc: error: no such option\n") is None
