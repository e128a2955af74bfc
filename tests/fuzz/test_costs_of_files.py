# SPDX-License-Identifier: Apache-2.0
"""Files in the tree of a build that strangers wrote: what reading them costs at 1x and 8x."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from measured import costs

from etrace.export import merging
from etrace.imports.strace.paths import Here
from etrace.origin.dpkg import Dpkg
from etrace.origin.git import read_index
from etrace.origin.languages import Pip
from etrace.origin.package import Folder, Release
from etrace.rules import dependency_files, generated, make_database, ninja_deps, ninja_manifest
from etrace.rules.rule import absolute

TIMES, MOST = 8, 20
FLOOR_SECONDS, FLOOR_BYTES = 0.3, 64 << 20
#: of memory for each byte of a file that is not kept, beyond the floor
MOST_PER_BYTE = 12
Work = Callable[[], object]
KINDS: dict[str, tuple[int, Callable[[Path, int], Work]]] = {}


def kind(n: int) -> Callable[[Callable[[Path, int], Work]], Callable[[Path, int], Work]]:
    """Register what writes a file of `n` parts into a directory and returns what reads it."""

    def register(make: Callable[[Path, int], Work]) -> Callable[[Path, int], Work]:
        KINDS[make.__name__] = (n, make)
        return make

    return register


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@kind(100_000)
def dependency_file(folder: Path, n: int) -> Work:
    path = put(folder / "x.d", b"x.o:" + b" a\\ b.h" * n + b"\n")
    return lambda: sum(1 for _ in dependency_files.inputs(path))


def data_base(folder: Path, lines: Iterable[str], recipe: str = "", head: str = "") -> Work:
    """Write what make prints of files, each with its line, and return what reads it."""
    after = f"#  Implicit rule search has not been done.\n#  File does not exist.\n{recipe}\n"
    text = f"# Make data base, printed on x\n{head}# Files\n\n"
    put(folder / "printed", (text + "".join(f"{line}\n{after}" for line in lines)).encode())
    return lambda: make_database.read((folder / "printed").read_text(), folder)


@kind(4_000)
def names_in_a_data_base_of_make(folder: Path, n: int) -> Work:
    names = [f"a {number} b" for number in range(n)]
    return data_base(folder, [*(f"{name}:" for name in names), f"all: {' '.join(names)}"])


@kind(5_000)
def names_of_one_word_in_a_data_base_of_make(folder: Path, n: int) -> Work:
    names = [" ".join("a" * number) for number in range(1, 64)]
    return data_base(folder, [*(f"{name}:" for name in names), f"all: {' '.join('a' * n)}"])


@kind(20_000)
def colons_in_a_data_base_of_make(folder: Path, n: int) -> Work:
    return data_base(folder, ["a: " + "b: " * n, "c: " + "d:: " * n, "e f:"])


@kind(8_000)
def double_colons_in_a_data_base_of_make(folder: Path, n: int) -> Work:
    return data_base(folder, (f"a:: b{number}" for number in range(n)))


@kind(20_000)
def lines_in_a_data_base_of_make(folder: Path, n: int) -> Work:
    lines = "#  recipe to execute (from 'x', line 1):\n" + "\tx \\\n" * n + "\ty\n"
    return data_base(folder, ["a: b"], lines + "\t" + "\\" * n)


@kind(3_000)
def waits_in_a_data_base_of_make(folder: Path, n: int) -> Work:
    needs = " .WAIT ".join(f"b{number}" for number in range(n))
    data_base(folder, [f"a: {needs}"], head="# Variables\n# default\nMAKE_VERSION := 4.4\n")

    def work() -> object:
        rules = make_database.read((folder / "printed").read_text(), folder)
        assert rules is not None
        assert rules.needs([f"{folder}/b{n - 1}"], [f"{folder}/b0"], order_only=True)
        return rules

    return work


@kind(60_000)
def cache_of_cmake(folder: Path, n: int) -> Work:
    put(folder / "CMakeCache.txt", b"CMAKE_HOME_DIRECTORY:X=y\n" * n)
    return lambda: generated.roots(folder)


@kind(16_000)
def long_name_in_a_cache_of_cmake(folder: Path, n: int) -> Work:
    line = b"CMAKE_HOME_DIRECTORY:INTERNAL=/" + b"a/" * n
    put(folder / "CMakeCache.txt", line + b"\n")
    return lambda: generated.roots(folder)


@kind(16_000)
def long_name_in_a_makefile(folder: Path, n: int) -> Work:
    return lambda: absolute.__wrapped__(str(folder), "a/" * n)


@kind(16_000)
def long_name_in_a_log_of_strace(_: Path, n: int) -> Work:
    here = Here()
    return lambda: (here.file(b"/" + b"a/" * n), here.entry(b"/" + b"a/" * n))


@kind(50_000)
def info_of_meson(folder: Path, n: int) -> Work:
    put(folder / "meson-info" / "meson-info.json", b'{"a": [' + b"1," * n + b"1]}")
    return lambda: generated.roots(folder)


@kind(20_000)
def build_ninja(folder: Path, n: int) -> Work:
    put(folder / "build.ninja", b"".join(b"build o%d: phony i%d\n" % (i, i) for i in range(n)))
    return lambda: len(ninja_manifest.read(folder, "build.ninja").edges)


@kind(20_000)
def log_of_ninja(folder: Path, n: int) -> Work:
    records = b"".join(struct.pack("<I8sI", 12, b"n%07d" % i, ~i & 0xFFFFFFFF) for i in range(n))
    path = put(folder / ".ninja_deps", b"# ninjadeps\n\x04\0\0\0" + records)
    return lambda: ninja_deps.read(path)


@kind(20_000)
def compilation_database(folder: Path, n: int) -> Work:
    entry = b'{"directory": "/", "file": "a"}'
    path = put(folder / "compile_commands.json", b"[" + b",".join([entry] * n) + b"]")
    return lambda: len(merging.read(path))


@kind(200_000)
def record_of_pip(folder: Path, n: int) -> Work:
    site = "usr/lib/python3/site-packages"
    put(folder / site / "a-1.dist-info" / "RECORD", b"".join(b"%d,,\n" % i for i in range(n)))
    wanted = [os.fsencode(f"/{site}/7")]
    return lambda: Pip(Folder(os.fsencode(folder)), print).owners(wanted)


@kind(100_000)
def status_of_dpkg(folder: Path, n: int) -> Work:
    put(folder / "var/lib/dpkg/status", b"Package: a\n\n\n\n" * n)
    top = Folder(os.fsencode(folder))
    return lambda: len(Dpkg(top, Release(top), lambda _: None).packages)


@kind(400_000)
def list_of_dpkg(folder: Path, n: int) -> Work:
    put(folder / "var/lib/dpkg/status", b"Package: a\nStatus: install ok installed\n")
    put(folder / "var/lib/dpkg/info/a.list", b"/a\n" * n)
    top = Folder(os.fsencode(folder))
    return lambda: Dpkg(top, Release(top), lambda _: None).owners([b"/b"])


@kind(10_000)
def index_of_git(folder: Path, n: int) -> Work:
    entries = b"".join(
        (bytes(60) + struct.pack(">H", 8) + b"%08d" % i).ljust(72, b"\0") for i in range(n)
    )
    raw = b"DIRC" + struct.pack(">II", 2, n) + entries
    path = put(folder / "index", raw + hashlib.sha1(raw, usedforsecurity=False).digest())
    return lambda: len(read_index(path.read_bytes()).entries)


#: what is read of them is kept: edges, entries
KEPT = {"build_ninja", "log_of_ninja", "compilation_database", "index_of_git"} | {
    name for name in KINDS if name.endswith("in_a_data_base_of_make")
}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_large_file_costs_as_its_size(name: str, tmp_path: Path) -> None:
    n, make = KINDS[name]
    one, many = make(tmp_path / "one", n), make(tmp_path / "many", n * TIMES)
    n_bytes = sum(p.stat().st_size for p in (tmp_path / "many").rglob("*") if p.is_file())
    one()  # imports, and what Python makes once
    small, large = costs(one), costs(many)
    shown = f"{name}, {n_bytes:,} bytes: {small} -> {large}"
    print(shown)
    assert large[0] <= MOST * small[0] + FLOOR_SECONDS, shown
    assert large[1] <= MOST * small[1] + FLOOR_BYTES, shown
    assert name in KEPT or large[1] <= MOST_PER_BYTE * n_bytes + FLOOR_BYTES, shown


# ---- files without an end, and of other shapes ----

SPARSE: dict[str, Callable[[Path], object]] = {
    "x.d": lambda path: list(dependency_files.inputs(path)),
    "CMakeCache.txt": lambda path: generated.roots(path.parent),
    "meson-info/meson-info.json": lambda path: generated.roots(path.parent.parent),
}


@pytest.mark.parametrize("size", [1 << 19, 1 << 31, 1 << 40])
@pytest.mark.parametrize("name", sorted(SPARSE))
def test_a_sparse_file_is_not_read(name: str, size: int, tmp_path: Path) -> None:
    path = put(tmp_path / name, b"")
    os.truncate(path, size)
    seconds, n_bytes = costs(lambda: SPARSE[name](path))
    assert seconds < 2
    assert n_bytes < 16 << 20
    assert not SPARSE[name](path)


@pytest.mark.parametrize("name", sorted(SPARSE))
def test_a_pipe_is_not_waited_for(name: str, tmp_path: Path) -> None:
    path = put(tmp_path / name, b"")
    path.unlink()
    os.mkfifo(path)
    assert not SPARSE[name](path)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "7", '"a"', "[" * 100_000, '{"directories": []}', '{"directories": null}',
        '{"directories": {"source": 7}}', '{"directories": {"source": null}}',
        '{"directories": {"source": {"source": "/a"}}}', '{"directories": "source"}',
        '{"directories": {"source": "/a\\u0000b"}}', '{"directories": {"source": "/\\ud800"}}',
        '{"a":' * 100_000, "{", "\ufeff{}", "NaN", '{"directories": {"source": ""}}', "1" * 5000,
    ],
)  # fmt: skip
def test_what_meson_would_not_write_is_not_understood(text: str, tmp_path: Path) -> None:
    put(tmp_path / "meson-info" / "meson-info.json", text.encode())
    assert generated.roots(tmp_path) == ()
