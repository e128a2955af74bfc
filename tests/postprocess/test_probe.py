# SPDX-License-Identifier: Apache-2.0
"""Compilers are asked in a scratch directory, only when that is safe, and once."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from etrace.postprocess import probe, scratch
from etrace.postprocess.compiler_questions import names_configuration
from etrace.postprocess.probe import Prober, Question

GCC = Question(b"/usr/bin/gcc", "c", ())


@pytest.fixture
def safe() -> Iterator[Path]:
    """A directory that only this user can write, all along its path."""
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


def ask(prober: Prober, question: Question) -> tuple[bytes, ...] | None:
    return prober.ask([question], lambda *_: None).get(question)


@pytest.mark.parametrize(("binary", "language"), [("gcc", "c"), ("g++", "c++"), ("clang", "c")])
def test_the_answer_is_what_the_compiler_says(tmp_path: Path, binary: str, language: str) -> None:
    path = f"/usr/bin/{binary}"
    done = subprocess.run(
        [path, "-E", "-v", "-x", language, "/dev/null"], capture_output=True, check=True, text=True
    )
    shown = done.stderr.partition("search starts here:\n")[2].partition("End of search list.")[0]
    expected = tuple(line[1:].encode() for line in shown.splitlines() if line.startswith(" "))
    assert expected
    question = Question(path.encode(), language, ())
    assert ask(Prober(1, cache=tmp_path), question) == expected


def test_options_change_the_answer(tmp_path: Path) -> None:
    question = Question(b"/usr/bin/g++", "c++", (b"-nostdinc++",))
    found = ask(Prober(1, cache=tmp_path), question) or ()
    assert b"/usr/include" in found
    assert b"/usr/include/c++/12" not in found


def test_an_answer_is_remembered_until_the_compiler_changes(tmp_path: Path, safe: Path) -> None:
    question = put_compiler(safe)
    for _ in range(2):
        assert ask(Prober(1, cache=tmp_path), question) == (b"/opt/include",)
    assert calls(safe) == 1
    put_compiler(safe, body="# another one")
    assert ask(Prober(1, cache=tmp_path), question) == (b"/opt/include",)
    assert calls(safe) == 2


def test_a_damaged_memory_is_asked_again(tmp_path: Path, safe: Path) -> None:
    question = put_compiler(safe)
    ask(Prober(1, cache=tmp_path), question)
    (memory,) = tmp_path.iterdir()
    memory.write_text('{"directories": [1]}')
    assert ask(Prober(1, cache=tmp_path), question) == (b"/opt/include",)
    assert calls(safe) == 2


def test_a_compiler_runs_in_an_empty_directory_with_a_clean_environment(
    tmp_path: Path, safe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCC_EXEC_PREFIX", "/tmp/evil")
    monkeypatch.chdir(tmp_path)
    question = put_compiler(safe)
    ask(Prober(1, cache=tmp_path / "cache"), question)
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
    ("options", "is_told"),
    [
        ([b"--target=/tmp/evil/x"], True),
        ([b"-target", b"../x"], True),
        ([b"--target=aarch64-linux-gnu", b"--sysroot=/opt/sys"], False),
        ([b"-target", b"x86_64", b"-resource-dir", b"/usr/lib/clang/14"], False),
    ],
)
def test_a_target_that_is_a_path_names_a_configuration(options: list[bytes], is_told: bool) -> None:
    """clang reads TARGET-clang.cfg, which may load a plugin."""
    assert names_configuration(options) == is_told


def test_a_compiler_that_changed_after_the_build_is_not_asked(tmp_path: Path, safe: Path) -> None:
    question = put_compiler(safe)
    changed_ns = (safe / "gcc").stat().st_ctime_ns
    assert ask(Prober(1, changed_ns - 1, tmp_path), question) is None
    assert calls(safe) == 0
    assert ask(Prober(1, changed_ns, tmp_path), question) == (b"/opt/include",)


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
def test_what_somebody_else_could_have_put_there_is_not_run(
    tmp_path: Path, safe: Path, spoil: object
) -> None:
    question = put_compiler(safe)
    assert callable(spoil)
    spoil(safe / "gcc")
    assert ask(Prober(1, cache=tmp_path), question) is None
    assert calls(safe) == 0


def test_a_link_from_an_unsafe_place_is_not_followed(tmp_path: Path, safe: Path) -> None:
    put_compiler(safe)
    (tmp_path / "gcc").symlink_to(safe / "gcc")
    assert scratch.may_run(safe / "gcc")
    assert not scratch.may_run(tmp_path / "gcc")  # /tmp is everybody's


@pytest.mark.parametrize("name", [b"/no/such/gcc", b"/etc/passwd", b"/usr/bin", b"/a\0b"])
def test_what_is_no_program_has_no_answer(tmp_path: Path, name: bytes) -> None:
    assert ask(Prober(1, cache=tmp_path), Question(name, "c", ())) is None


def test_a_compiler_that_hangs_is_ended_with_its_children(tmp_path: Path, safe: Path) -> None:
    question = put_compiler(safe, body=f"sleep 1000 & echo $! > {safe}/child; wait")
    assert probe.run_compiler(question, timeout_seconds=0.5) is None
    child = int((safe / "child").read_text())
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_an_answer_without_an_end_is_none() -> None:
    assert probe.search_list(b"#include <...> search starts here:\n /usr/include\n") is None
    assert probe.search_list(b"gcc: error: no such option\n") is None


def test_a_cache_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert ask(Prober(2, cache=tmp_path / "file"), GCC)
