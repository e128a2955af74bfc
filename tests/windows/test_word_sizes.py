# SPDX-License-Identifier: Apache-2.0
"""32-bit programs below 64-bit ones and the reverse, under the tracer of x86-64."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from windows import wine as wine_support
from windows import wine32
from windows.wine import Wine, plain, read_spec, reported, windows_path


@pytest.fixture(scope="module")
def both(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wine]:
    """Give a prefix whose Wine runs programs of both word sizes."""
    loader = wine32.lay_out(tmp_path_factory.mktemp("wine32"))
    tracer = built / "x86_64/windows-tracer.exe"
    with wine_support.wine(tmp_path_factory.mktemp("both"), tracer, str(loader)) as it:
        wine32.add_libraries(it.prefix, loader)
        yield it


@pytest.fixture(scope="module")
def actor32(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("actor32") / "actor32.exe"
    source = wine_support.PROGRAMS / "actor.c"
    return wine_support.build_program(source, out, gcc="i686-w64-mingw32-gcc")


@pytest.fixture
def folder(actor: Path, actor32: Path, tmp_path: Path) -> Path:
    """Return a folder with the actor in both word sizes."""
    shutil.copy(actor, tmp_path / "actor.exe")
    shutil.copy(actor32, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "status", "n"),
    [
        ("actor32.exe exit 7", 7, 1),
        ("actor.exe run actor32.exe run actor.exe run actor32.exe exit 5", 5, 4),
        ("actor32.exe tree 2 2", 0, 7),
        (r"actor32.exe in C:\windows actor32.exe exit 2", 2, 2),
        ("actor32.exe trap", 6, 1),
        ("actor32.exe raise 40010005", 6, 1),
        ("actor32.exe crash", 5, 1),
        ("actor32.exe kill", 9, 2),
        ("actor.exe debug actor32.exe exit 5", 5, 2),
        ("actor32.exe debugged", 1, 1),
    ],
)
def test_programs_of_both_word_sizes_are_recorded(
    both: Wine, folder: Path, line: str, status: int, n: int
) -> None:
    env = {"ACTOR_LOG": windows_path(folder / "log"), "OF_THE_BUILD": "größe"}
    options = ("-d", "-o", "spec.json", "--nfsdb", "trace", "--env", "--")
    done = both.trace(folder, *options, *line.split(), env=env)
    assert done.status == status, done
    items = read_spec(folder / "spec.json")
    assert len(items) == n
    assert sorted(map(str, plain(items))) == sorted(map(str, reported(folder / "log")))
    assert n_processes_with((folder / "trace").read_bytes(), "OF_THE_BUILD=größe") == n


def n_processes_with(trace: bytes, variable: str) -> int:
    """Return how many processes had a variable: a line for each comes before it."""
    before = trace.partition(variable.encode())[0].splitlines()[:-1]
    return next(i for i, line in enumerate(reversed(before)) if b"!UPID|" not in line)


def test_the_tracer_for_32_bits_says_that_it_cannot_see_64_bit_programs(
    both: Wine, built: Path, folder: Path
) -> None:
    words: list[str | Path] = [built / "i686/windows-tracer.exe", "--", "actor.exe", "exit", "0"]
    done = both.run(words, folder)
    assert done.status == 125
    assert "use that of x86-64" in done.error
