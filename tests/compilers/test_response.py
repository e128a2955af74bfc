# SPDX-License-Identifier: Apache-2.0
"""Response files, with binutils as the oracle of their quoting."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from etrace.compilers import regular_file, response
from etrace.compilers.response import Expanded, ResponseFiles
from etrace.compilers.response_forms import forms

TEXTS = [
    b"A B\n\tC\fD\vE\rF",
    b"'A=a b' \"B=c d\"",
    b'A=a\\ b B=\\"x\\" "D=\\\\"',
    b'D\'A\'"B"C"=1" end',
    b"x '' y",
    b"  \n only  ",
    b"X='unclosed quote",
    b"A'\"'B\"'\"",
    b"'a'b\"c\" 'd' \"e f\" '\"' \\' \"'\"",
    b"ends with a backslash\\",
]
#: newer binutils (2.44) take a backslash between single quotes literally; gcc 12 and 14 do not
BETWEEN_SINGLE_QUOTES = [
    b"'C=\\'x' 'D\\\\' 'E\\F'",
    b"'ends with a backslash\\",
]


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_split_as_libiberty_splits_them(tmp_path: Path, text: bytes) -> None:
    """`nm @words` complains of each word in turn, as of a file that does not exist."""
    (tmp_path / "words").write_bytes(text)
    command = ["nm", "@words"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, check=False, env=os.environ | {"LC_ALL": "C"}
    )
    shown = [b"nm: '%s': No such file" % word for word in forms()["gnu"].split(text)]
    assert done.stderr.splitlines() == shown


@pytest.mark.parametrize("text", BETWEEN_SINGLE_QUOTES)
def test_a_backslash_between_single_quotes_quotes_as_for_gcc(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "words").write_bytes(text)
    command = ["gcc", "-nostdlib", "@words"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, check=False, env=os.environ | {"LC_ALL": "C"}
    )
    complaints = [line.partition(b"cannot find ")[2] for line in done.stderr.splitlines()]
    assert complaints[:-1] == [
        b"%s: No such file or directory" % word for word in forms()["gnu"].split(text)
    ]


def test_files_are_nested_and_placed_where_they_were_named(tmp_path: Path) -> None:
    (tmp_path / "outer").write_bytes(b"-c @inner x.c")
    (tmp_path / "inner").write_bytes(b"'-DA=b c'")
    found = ResponseFiles().expand([b"gcc", b"-O2", b"@outer", b"-o", b"x.o"], tmp_path)
    assert found == Expanded((b"gcc", b"-O2", b"-c", b"-DA=b c", b"x.c", b"-o", b"x.o"))


def test_a_file_whose_last_word_asks_for_a_name_gets_none_from_outside(tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(b"-c --via")
    (tmp_path / "x.c").write_bytes(b"-DTAKEN")
    found = ResponseFiles().expand([b"armcc", b"@words", b"x.c"], tmp_path)
    assert found.argv == (b"armcc", b"-c", b"--via", b"x.c")


def test_a_file_that_is_gone_is_reported_and_left_out(tmp_path: Path) -> None:
    found = ResponseFiles().expand([b"ld", b"@gone", b"a.o"], tmp_path)
    assert found == Expanded((b"ld", b"a.o"), (os.fsencode(tmp_path / "gone"),))


def test_a_file_that_names_itself_ends(tmp_path: Path) -> None:
    (tmp_path / "self").write_bytes(b"-a @self")
    found = ResponseFiles().expand([b"gcc", b"@self"], tmp_path)
    assert found.argv == (b"gcc", *[b"-a"] * response.MAX_DEPTH)
    assert found.missing == (os.fsencode(tmp_path / "self"),)


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = ResponseFiles().expand([b"gcc", b"@pipe"], tmp_path)
    assert found.missing == (os.fsencode(tmp_path / "pipe"),)


def test_a_file_of_the_kernel_is_not_read() -> None:
    assert ResponseFiles().expand([b"gcc", b"@/proc/self/maps"], b"/").missing == (
        b"/proc/self/maps",
    )


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    read: list[bytes] = []

    def read_regular(path: bytes, max_bytes: int) -> bytes | None:
        read.append(path)
        return regular_file.read_regular(path, max_bytes)

    monkeypatch.setattr(response, "read_regular", read_regular)
    return read


def test_a_file_is_read_once_for_all_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "words").write_bytes(b"-a 'b c'")
    read, files = count_reads(monkeypatch), ResponseFiles()
    for _ in range(3):
        assert files.expand([b"ld", b"@words", b"@words"], tmp_path).argv == (
            b"ld", *[b"-a", b"b c"] * 2,
        )  # fmt: skip
    assert read == [os.fsencode(tmp_path / "words")]


def test_a_command_has_a_limit_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response, "MAX_COMMAND_BYTES", 1000)
    path = tmp_path / "words"
    path.write_bytes(b"a" * 400)
    files = ResponseFiles()
    found = files.expand([b"ld", *[b"@words"] * 20], tmp_path)
    assert found == Expanded((b"ld", *[b"a" * 400] * 2), (os.fsencode(path),))
    assert files.expand([b"ld", b"@words"], tmp_path).missing == ()


@pytest.mark.parametrize("n_remembered", [0, response.MAX_REMEMBERED_BYTES])
def test_all_commands_have_a_limit_that_counts_each_content_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_remembered: int
) -> None:
    monkeypatch.setattr(response, "MAX_BYTES", 1000)
    monkeypatch.setattr(response, "MAX_REMEMBERED_BYTES", n_remembered)
    for name in "abc":
        (tmp_path / name).write_bytes(name.encode() * 400)
    (tmp_path / "copy").write_bytes(b"a" * 400)
    files, used = ResponseFiles(), ["a"] * 4 + ["b", "c", "copy", "b", "a"]
    found = [files.expand([b"ld", f"@{name}".encode()], tmp_path).argv[1:] for name in used]
    assert b"".join(word[:1] for argv in found for word in argv or [b"-"]) == b"aaaab-aba"


def test_a_captured_content_counts_once_for_all_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response, "MAX_BYTES", 1000)
    files = ResponseFiles(lambda _upid, _path: b"a" * 400)
    found = [files.expand([b"ld", b"@words"], tmp_path, upid).missing for upid in range(1, 6)]
    assert found == [()] * 5


def test_what_all_commands_expand_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response, "MAX_EXPANDED_BYTES", 1000)
    (tmp_path / "words").write_bytes(b"a" * 400)
    files = ResponseFiles()
    found = [files.expand([b"ld", b"@words"], tmp_path).argv[1:] for _ in range(4)]
    assert found == [(b"a" * 400,), (b"a" * 400,), (), ()]


def test_reading_in_vain_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response, "MAX_BYTES", 0)
    monkeypatch.setattr(response, "MAX_EXPANDED_BYTES", 1000)
    (tmp_path / "words").write_bytes(b"a" * 400)
    bounds = list[int]()

    def read_regular(path: bytes, max_bytes: int) -> bytes | None:
        bounds.append(max_bytes)
        return regular_file.read_regular(path, max_bytes)

    monkeypatch.setattr(response, "read_regular", read_regular)
    ResponseFiles().expand([b"ld", *[b"@words"] * 4], tmp_path)
    assert bounds == [1000, 600, 200, 200]


def test_a_file_above_the_limit_is_as_if_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response, "MAX_FILE_BYTES", 10)
    (tmp_path / "words").write_bytes(b"a" * 11)
    assert ResponseFiles().expand([b"ld", b"@words"], tmp_path).argv == (b"ld",)


def test_files_that_name_each_other_end(tmp_path: Path) -> None:
    """Without limits 2^32 words."""
    (tmp_path / "a").write_bytes(b"@b @b")
    (tmp_path / "b").write_bytes(b"@a @a x")
    found = ResponseFiles().expand([b"ld", b"@a"], tmp_path)
    assert len(found.argv) < response.MAX_FILES
    assert found.missing == (os.fsencode(tmp_path / "a"), os.fsencode(tmp_path / "b"))


def test_what_was_captured_counts_before_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(b"now")
    captured = {(7, os.fsencode(tmp_path / "words")): b"then"}
    files = ResponseFiles(lambda upid, path: captured.get((upid, path)))
    found = [files.expand([b"ld", b"@words"], tmp_path, upid).argv[1] for upid in (7, 8, 7)]
    assert found == [b"then", b"now", b"then"]


def test_argv_without_response_files_stays() -> None:
    assert ResponseFiles().expand([b"@x", b"a@b", b""], b"/") == Expanded((b"@x", b"a@b", b""))
