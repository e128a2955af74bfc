# SPDX-License-Identifier: Apache-2.0
"""Response files, with binutils as the oracle of their quoting."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from etrace.compilers.response import Expanded, expand, split

TEXTS = [
    b"A B\n\tC\fD\vE\rF",
    b"'A=a b' \"B=c d\"",
    b'A=a\\ b B=\\"x\\" \'C=\\\'x\' "D=\\\\"',
    b'D\'A\'"B"C"=1" end',
    b"x '' y",
    b"  \n only  ",
    b"X='unclosed quote",
    b"A'\"'B\"'\"",
]


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_split_as_libiberty_splits_them(tmp_path: Path, text: bytes) -> None:
    """`nm @words` complains of each word in turn, as of a file that does not exist."""
    (tmp_path / "words").write_bytes(text)
    command = ["nm", "@words"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, check=False, env=os.environ | {"LC_ALL": "C"}
    )
    shown = [b"nm: '%s': No such file" % word for word in split(text)]
    assert done.stderr.splitlines() == shown


def test_files_are_nested_and_stand_where_they_were_named(tmp_path: Path) -> None:
    (tmp_path / "outer").write_bytes(b"-c @inner x.c")
    (tmp_path / "inner").write_bytes(b"'-DA=b c'")
    found = expand([b"gcc", b"-O2", b"@outer", b"-o", b"x.o"], tmp_path)
    assert found == Expanded((b"gcc", b"-O2", b"-c", b"-DA=b c", b"x.c", b"-o", b"x.o"))


def test_a_file_that_is_gone_is_reported_and_left_out(tmp_path: Path) -> None:
    found = expand([b"ld", b"@gone", b"a.o"], tmp_path)
    assert found == Expanded((b"ld", b"a.o"), (os.fsencode(tmp_path / "gone"),))


def test_a_file_that_names_itself_ends(tmp_path: Path) -> None:
    (tmp_path / "self").write_bytes(b"-a @self")
    found = expand([b"gcc", b"@self"], tmp_path)
    assert found.argv == (b"gcc", *[b"-a"] * 2000)
    assert found.missing == (os.fsencode(tmp_path / "self"),)


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert expand([b"gcc", b"@pipe"], tmp_path).missing == (os.fsencode(tmp_path / "pipe"),)


def test_argv_without_response_files_stays() -> None:
    assert expand([b"@x", b"a@b", b""], b"/") == Expanded((b"@x", b"a@b", b""))
