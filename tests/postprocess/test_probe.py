# SPDX-License-Identifier: Apache-2.0
"""Compilers are asked in a scratch directory, and only when that is safe."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trying

from etrace.postprocess.compilations import probe
from etrace.postprocess.compilations.compiler_questions import allowed_options
from etrace.postprocess.compilations.probe import Prober, Question
from etrace.postprocess.compilations.trusted import trusted_compiler
from etrace.sandbox import programs
from etrace.sandbox.programs import UntrustedError


@pytest.fixture
def safe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that only this user can write, all along its path; who tests counts as root."""
    monkeypatch.setattr(programs, "OWNERS", (0, os.geteuid()))
    base = "/run" if os.geteuid() == 0 else Path.home()
    path = Path(tempfile.mkdtemp(prefix="etrace-test-", dir=base))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


#: a compiler whose directories are where it runs and its variables; with -nostdinc++ it never ends
COMPILER = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
int main(int n, char **words)
{
    char **each, cwd[4096];
    for (each = words; *each; each++)
        if (!strcmp(*each, "-nostdinc++") && (fork() || 1))
            for (;;)
                pause();
    fprintf(stderr, "#include \\"...\\" search starts here:\\n");
    fprintf(stderr, "#include <...> search starts here:\\n");
    fprintf(stderr, " %s\\n", getcwd(cwd, sizeof(cwd)));
    for (each = environ; *each; each++)
        fprintf(stderr, " %.*s\\n", (int)strcspn(*each, "="), *each);
    fprintf(stderr, "End of search list.\\n");
    return 0;
}
"""


def put_compiler(directory: Path, *options: bytes) -> Question:
    """A compiler that is not known to anybody else."""
    path = directory / "gcc"
    (directory / "gcc.c").write_text(COMPILER)
    subprocess.run(["gcc", "-o", path, directory / "gcc.c"], check=True)
    path.chmod(0o755)
    return Question(os.fsencode(path), "c", options or (b"-m32",))


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
    safe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = put_compiler(safe)
    monkeypatch.setenv("GCC_EXEC_PREFIX", "/tmp/evil")
    cwd, *names = ask(question) or ()
    assert b"/etrace-scratch-" in cwd
    assert not Path(os.fsdecode(cwd)).exists()
    names = [name for name in names if not name.startswith(b"GIT_CONFIG_")]  # root's
    assert sorted(names) == [b"CLANG_NO_DEFAULT_CONFIG", b"LC_ALL", b"PATH", b"TMPDIR"]


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


@pytest.mark.parametrize("name", ["perl", "sh", "ccache", "cc1", "gccx", "python3.11"])
def test_a_program_without_the_name_of_a_compiler_is_not_run(safe: Path, name: str) -> None:
    put_compiler(safe)
    (safe / "gcc").rename(safe / name)
    (safe / "gcc").symlink_to(name)  # what it is called does not count, nor does argv[0]
    with pytest.raises(UntrustedError, match="not a compiler that etrace may run"):
        trusted_compiler(os.fsencode(safe / "gcc"))
    assert ask(Question(os.fsencode(safe / "gcc"), "c", ())) is None


def test_the_file_itself_is_run_whatever_led_to_it(tmp_path: Path, safe: Path) -> None:
    put_compiler(safe)
    (tmp_path / "perl").symlink_to(safe / "gcc")
    assert trusted_compiler(os.fsencode(tmp_path / "perl")) == safe / "gcc"


def test_a_compiler_that_changed_after_the_build_is_not_asked(safe: Path) -> None:
    question = put_compiler(safe)
    changed_ns = (safe / "gcc").stat().st_ctime_ns
    assert ask(question, changed_ns - 1) is None
    assert ask(question, changed_ns)


def test_a_script_is_not_run(safe: Path) -> None:
    question = put_compiler(safe)
    (safe / "gcc").write_text(f"#!{safe}/other\n")
    assert ask(question) is None


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
    assert ask(question)
    spoil(safe / "gcc")
    assert ask(question) is None


def test_a_compiler_of_the_user_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_compiler(tmp_path)
    monkeypatch.setattr(programs, "OWNERS", ())
    with pytest.raises(UntrustedError, match="gcc does not belong to root"):
        trusted_compiler(os.fsencode(tmp_path / "gcc"))


@pytest.mark.parametrize(
    "name", [b"/no/such/gcc", b"gcc", b"/etc/passwd", b"/usr/bin", b"/a\0b", b""]
)
def test_what_is_no_program_has_no_answer(name: bytes) -> None:
    assert ask(Question(name, "c", ())) is None


def test_a_compiler_that_hangs_is_ended_with_its_children(safe: Path) -> None:
    command = probe.command_line(put_compiler(safe, b"-nostdinc++"), safe / "gcc")
    assert probe.run_compiler(command, timeout_seconds=1) is None
    trying.until(lambda: not running(safe / "gcc"))


def running(program: Path) -> list[str]:
    """Return the processes of a program."""
    found = []
    for link in Path("/proc").glob("[0-9]*/exe"):
        with suppress(OSError):
            if link.readlink() == program:
                found.append(link.parent.name)
    return found


def test_an_answer_without_an_end_is_none() -> None:
    assert probe.search_list(b"#include <...> search starts here:\n /usr/include\n") is None
    assert probe.search_list(b"gcc: error: no such option\n") is None
