# SPDX-License-Identifier: Apache-2.0
"""Event lines of the tracer -> a database of a build on Windows, and what `cas` says of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from libetrace.depend.masks import path_mask
from windows.wine import Wine, read_spec, windows_path

from etrace.export.build_spec import KNOWN, KNOWN_WINDOWS
from etrace.nfsdb.store import open_database
from etrace.query.select.file_names import find_files
from etrace.spec.path_style import style_of

BIN = Path(sys.executable).parent
TOOLS = (
    "cl",
    "clang-cl",
    "link",
    "lib",
    "iccarm",
    "armcc",
    "armclang",
    "clang",
    "x86_64-w64-mingw32-gcc",
)
BUILD = r"""@echo off
cl.exe /nologo /c /Iinc "/DNAME=a b" /Fobuild\a.obj src\a.c
CLANG-CL /c "/Fobuild\b c.obj" "src\b c.cpp"
cl /c @all.rsp
iccarm src\d.c -f own.xcl -o build\d.o
armcc -c --cpu Cortex-M3 -o build\e.o src/e.c
armclang --target=arm-arm-none-eabi -c src\f.c -o build\f.o
x86_64-w64-mingw32-gcc -c @gnu.rsp
armcc --via outer.via -o build\h.o
cl /nologo /c /TP /Fobuild\ src\i.inc /Tc src\j.txt
clang --driver-mode=cl /c src\k.c /Fobuild/k
lib /OUT:build\x.lib build\a.obj
link /OUT:build\x.exe build\a.obj
cl /?
"""
FILES = {
    "all.rsp": '/Iinc\r\n/Fobuild\\r.obj "src\\in response.c"',
    "own.xcl": "--cpu Cortex-M4 -Iinc",
    "outer.via": "-c --VIA=inner.via",
    "inner.via": "--cpu Cortex-M0 src\\h.c",
    "gnu.rsp": "-DX=\\\"y\\\" src/g.c -o build/g.o",
}  # fmt: skip


def cas(cwd: Path, *words: str) -> str:
    """Run cas; it must succeed."""
    done = subprocess.run(
        [BIN / "cas", *words], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(wine: Wine, actor: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a build that was traced, parsed and post-processed."""
    folder = tmp_path_factory.mktemp("build")
    for tool in TOOLS:
        shutil.copy(actor, folder / f"{tool}.exe")
    (folder / "build.cmd").write_bytes(BUILD.replace("\n", "\r\n").encode())
    for name, content in FILES.items():
        (folder / name).write_bytes(content.encode())
    words = ("--nfsdb", ".nfsdb", "--env", "-o", "spec.json", "--", "cmd", "/c", "build.cmd")
    done = wine.trace(folder, *words, env={"OF_THE_BUILD": "größe", "ACTOR_STATUS": "0"})
    assert done.error == ""
    cas(folder, "parse")
    cas(folder, "pp")
    return folder


def sources(folder: Path) -> list[str]:
    """Return what was compiled, below the folder."""
    prefix = windows_path(folder) + "\\"
    shown = [entry["file"] for entry in json.loads(cas(folder, "export", "compile_commands"))]
    return [name.removeprefix(prefix) for name in shown]


def test_the_database_says_that_it_is_of_windows(folder: Path) -> None:
    image = open_database(folder)
    assert style_of(image.attributes).is_windows
    assert image.attributes["source_root"] == windows_path(folder)


def test_all_commands_are_in_it_with_their_parents(folder: Path) -> None:
    shown = cas(folder, "tree").splitlines()
    assert len(shown) == 14
    assert shown[0].startswith("cmd /c build.cmd")
    assert all(line.startswith("  ") for line in shown[1:])
    assert "'/DNAME=a b'" in shown[1]


def test_compilers_of_windows_are_recognised(folder: Path) -> None:
    assert sources(folder) == [
        r"src\a.c", r"src\b c.cpp", r"src\in response.c", r"src\d.c", r"src\e.c", r"src\f.c",
        r"src\g.c", r"src\h.c", r"src\i.inc", r"src\j.txt", r"src\k.c",
    ]  # fmt: skip


def test_include_directories_and_macros_are_those_of_the_command(folder: Path) -> None:
    image = open_database(folder)
    includes = {image.string(row) for row in image["compilation_includes"]["string"]}
    assert includes == {(windows_path(folder) + r"\inc").encode()}
    name, value = (image["compilation_definitions"][each][0] for each in ("name", "value"))
    assert (image.string(name), image.string(value)) == (b"NAME", b"a b")


def test_the_build_spec_of_the_database_is_the_tracers(folder: Path) -> None:
    cas(folder, "export", "build-spec", "-o", "exported.json")
    ours, traced = read_spec(folder / "exported.json"), read_spec(folder / "spec.json")
    assert ours == traced
    shown = {item["arguments"][0]: item["respfile"] for item in traced if "respfile" in item}
    assert shown["iccarm"] == FILES["own.xcl"]
    assert shown["armcc"] == "-c " + FILES["inner.via"]
    assert len(shown) == 4


def test_response_files_of_any_option_are_in_the_compile_commands(folder: Path) -> None:
    shown = json.loads(cas(folder, "export", "compile_commands"))
    words = {entry["file"].rpartition("\\")[2]: entry["arguments"] for entry in shown}
    assert words["d.c"][2:] == ["--cpu", "Cortex-M4", "-Iinc", "-o", r"build\d.o"]
    assert words["h.c"][1:] == ["-c", "--cpu", "Cortex-M0", r"src\h.c", "-o", r"build\h.o"]


def test_each_of_two_sources_keeps_the_option_that_names_its_language(folder: Path) -> None:
    shown = json.loads(cas(folder, "export", "compile_commands"))
    words = {entry["file"].rpartition("\\")[2]: entry["arguments"] for entry in shown}
    both = ["cl", "/nologo", "/c", "/TP", "/Fobuild\\"]
    assert words["i.inc"] == [*both, r"src\i.inc"]
    assert words["j.txt"] == [*both, "/Tc", r"src\j.txt"]


def test_paths_are_found_in_any_case_and_with_both_slashes(folder: Path) -> None:
    image = open_database(folder)
    expected = (windows_path(folder) + r"\cl.exe").encode()
    for name in ("CL.EXE", windows_path(folder).replace("\\", "/").upper() + "/cl.exe"):
        assert [image.path_string(row) for row in find_files(image, [name.encode()])] == [expected]


def test_filters_of_commands_and_globs_compare_so_too(folder: Path) -> None:
    root = windows_path(folder).replace("\\", "/").upper()
    shown = cas(folder, "commands", "--command-filter", f"[bin=/CL.EXE,cwd={root}]")
    assert len(shown.splitlines()) == 4
    assert shown == cas(folder, "commands", "--command-filter", r"[bin=*\Cl.exe,type=wc]")
    image = open_database(folder)
    [row] = find_files(image, [b"*/iccARM.ex?"])
    assert image.path_string(row).endswith(rb"\iccarm.exe")
    assert path_mask(image, [os.fsencode(root) + b"/ICCARM*"]).count(1) == 1


def test_the_environment_of_each_process_is_in_it(folder: Path) -> None:
    assert "Env[0]OF_THE_BUILD=größe\n".encode() in (folder / ".nfsdb").read_bytes()


def test_the_known_programs_are_those_of_cas(wine: Wine, tmp_path: Path) -> None:
    shown = wine.trace(tmp_path, "-p").out.splitlines()
    assert shown == ["Known compilers:", *(f"  {name}" for name in (*KNOWN, *KNOWN_WINDOWS))]
