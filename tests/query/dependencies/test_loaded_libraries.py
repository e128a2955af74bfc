# SPDX-License-Identifier: Apache-2.0
"""Libraries that a tool loads to run, and those that it takes as input, by each backend."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from backends import names_without_module, need_tool
from libetrace.depend import configuration as config
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

from etrace.nfsdb.store import open_database
from etrace.parse import parse_trace
from etrace.postprocess.run import postprocess
from etrace.query.dependencies import walk
from etrace.query.rows.file_kinds import USUAL, FileKind, FileKinds

#: without a locale the first file that a program opens after its libraries is an input
SCRIPT = """\
export LC_ALL=C
gcc -fPIC -c a.c; ar rcs liba.a a.o
gcc main.c liba.a -lz -o prog
ld -shared -lz a.o -o bfd.so
ld.lld -shared -L"$(dirname "$(gcc -print-file-name=libz.so)")" -lz a.o -o lld.so
strip -o stripped.so bfd.so; cp "$(gcc -print-file-name=libm.so.6)" copy.so
rustc hello.rs; rustc --crate-type rlib lib.rs
"""
OWN = {
    "liba.a": {"a.c", "a.o"},
    "bfd.so": {"a.c", "a.o", "libz"},  # ld loads libz, and links it
    "lld.so": {"a.c", "a.o", "libz"},
    "stripped.so": {"a.c", "a.o", "libz", "bfd.so"},
    "copy.so": {"libm"},
    "liblib.rlib": {"lib.rs"},
}


@pytest.fixture(scope="module", params=names_without_module())
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    for tool in ("strace", "ld.lld", "rustc"):
        need_tool(tool, {"ld.lld": "lld"}.get(tool, tool))
    folder = tmp_path_factory.mktemp(request.param)
    work = folder / "work"
    work.mkdir()
    (work / "a.c").write_text("int a(void) { return 1; }\n")
    (work / "main.c").write_text("int a(void); int main(void) { return a(); }\n")
    (work / "hello.rs").write_text('fn main() { println!("hello"); }\n')
    (work / "lib.rs").write_text("pub fn one() -> i32 { 1 }\n")
    command = [str(Path(sys.executable).parent / "etrace"), "run", "-q", "--backend", request.param]
    done = subprocess.run(
        [*command, "-o", str(folder), "--", "sh", "-ec", SCRIPT],
        cwd=work, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    parse_trace([folder / ".nfsdb"], folder / ".nfsdb.json")
    postprocess(open_database(folder), config.load(folder), ("linked", "compilations"))
    return open_database(folder)


def inputs(image: Image, target: str) -> dict[str, FileKind]:
    """Return the kinds of the default view of what a file was made from, by name."""
    walked = walk(Dependencies(image), [os.fsencode(target)], Rules())
    kind_of = FileKinds(image).among(walked.executions)
    found = {os.fsdecode(image.path_string(path)): kind_of(path) for path in walked.paths}
    return {path: kind for path, kind in found.items() if kind in USUAL}


def names(image: Image, target: str) -> set[str]:
    """Return the names of a target's inputs, but for those of every compilation in C or Rust."""
    found = (re.sub(r"\.so\..*", "", Path(path).name) for path in inputs(image, target))
    return {name for name in found if not re.search(r"stdc-predef\.h|-[0-9a-f]{16}\.", name)}


@pytest.mark.parametrize("target", OWN)
def test_what_a_tool_loads_is_no_input(built: Image, target: str) -> None:
    assert names(built, target) - {"rust-toolchain.toml", "settings.toml"} == OWN[target]


def test_what_a_linker_loads_and_links_is_an_input(built: Image) -> None:
    found = inputs(built, "prog")
    shared = {Path(path).name for path, kind in found.items() if ".so" in path}
    assert {re.sub(r"\.so.*", "", name) for name in shared} == {
        "libz", "libc", "libgcc_s", "ld-linux-x86-64",
    }  # fmt: skip


def test_rust_runs_on_libraries_that_are_no_inputs(built: Image) -> None:
    found, kinds = inputs(built, "hello"), FileKinds(built)
    shown = {re.sub(r"[-.]so.*|-[0-9a-f]{16}.*", "", Path(path).name) for path in found}
    assert shown.isdisjoint({"libz", "libLLVM", "librustc_driver"})
    loaded = [
        path
        for path in range(built["paths"].n_rows)
        if re.search(rb"/lib(LLVM|rustc_driver)[^/]*$", built.path_string(path))
    ]
    assert {kinds.of(path) for path in loaded} == {FileKind.TOOL}
    assert len(loaded) >= 2
