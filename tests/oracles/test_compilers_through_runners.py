# SPDX-License-Identifier: Apache-2.0
"""Real compilers, linkers and archivers that a loader or another program runs in its process."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from backends import need_tool

BIN = Path(sysconfig.get_path("scripts"))
LOADER = "/lib64/ld-linux-x86-64.so.2"


def traced(folder: Path, backend: str, command: str) -> dict[str, Any]:
    """Trace a shell command; return its entries of compile_commands.json by output."""
    run: list[str | Path] = [BIN / "etrace", "run", "--backend", backend, "-o", "db"]
    run += ["--", "sh", "-ec", command]
    done = subprocess.run(run, cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for words in (["parse"], ["pp"], ["export", "compile_commands", "-o", "cc.json"]):
        subprocess.run([BIN / "cas", *words], cwd=folder / "db", check=False, capture_output=True)
    path = folder / "db/cc.json"
    entries = json.loads(path.read_bytes()) if path.exists() else []
    return {os.path.relpath(entry["output"], folder): entry for entry in entries}


def modules(folder: Path) -> list[str]:
    command: list[str | Path] = [BIN / "cas", "linked-modules", "--relative"]
    done = subprocess.run(command, cwd=folder / "db", check=True, capture_output=True, text=True)
    return done.stdout.split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.c").write_text("int a(void) { return X; }\n")
    (tmp_path / "b.c").write_text("int b(void) { return 0; }\n")
    (tmp_path / "words").write_text("-c -DX=1 a.c")
    return tmp_path.resolve()


@pytest.mark.parametrize("backend", ["ptrace", "preload"])
def test_a_loader_runs_the_tools(folder: Path, backend: str) -> None:
    gcc = os.path.realpath(need_tool("gcc", "gcc"))
    tools = {name: need_tool(name, name) for name in ("clang",)}
    found = traced(
        folder, backend,
        f"{LOADER} /usr/bin/gcc @words -o 1.o; {LOADER} --argv0 gcc --inhibit-cache {gcc} -c b.c;"
        f"{LOADER} --library-path /usr/lib/gcc {tools['clang']} @words -o 3.o;"
        f"{LOADER} /usr/bin/ar rcs l.a 1.o b.o; {LOADER} /usr/bin/ld -r 1.o b.o -o r.o;"
        f"{LOADER} /usr/bin/env -u A B=c nice -n 1 timeout -k 5 10 gcc @words -o 4.o",
    )  # fmt: skip
    assert {name: entry["arguments"] for name, entry in found.items()} == {
        "1.o": ["/usr/bin/gcc", "-c", "-DX=1", "a.c", "-o", "1.o"],
        "b.o": ["gcc", "-c", "b.c"],
        "3.o": [tools["clang"], "-c", "-DX=1", "a.c", "-o", "3.o"],
        "4.o": ["gcc", "-c", "-DX=1", "a.c", "-o", "4.o"],
    }
    assert {Path(name).name for name in modules(folder)} == {"l.a", "r.o"}


def test_valgrind_runs_a_compiler(folder: Path) -> None:
    need_tool("valgrind", "valgrind")
    found = traced(folder, "ptrace", "valgrind -q --tool=none gcc @words -o 1.o")
    assert found["1.o"]["arguments"] == ["gcc", "-c", "-DX=1", "a.c", "-o", "1.o"]


def test_java_runs_javac(folder: Path) -> None:
    need_tool("java", "default-jdk-headless")
    (folder / "A.java").write_text("class A {}\n")
    (folder / "more words").write_text("# which\n-d 'out dir'\n")
    (folder / "words").write_text("-m jdk.compiler/com.sun.tools.javac.Main\n")
    found = traced(folder, "ptrace", "java @words '@more words' A.java")
    entry = found["out dir/A.class"]
    assert entry["file"] == str(folder / "A.java")
    assert entry["arguments"][1:] == ["-d", "out dir", "A.java"]


def test_a_name_below_the_working_directory_is_its_real_one(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/a.c").write_text("int y;\n")
    (folder / "words").write_text("-c a.c")
    at = "/proc/self/cwd"
    found = traced(
        folder, "ptrace",
        f"gcc -c {at}/a.c -DX=1 -I{at}/sub -o {at}/1.o; cd sub; gcc -c {at}/a.c -o {at}/../2.o;"
        f"gcc @{at}/../words -o 3.o",
    )  # fmt: skip
    assert {name: (entry["directory"], entry["file"]) for name, entry in found.items()} == {
        "1.o": (str(folder), str(folder / "a.c")),
        "2.o": (str(folder / "sub"), str(folder / "sub/a.c")),
        "sub/3.o": (str(folder / "sub"), str(folder / "sub/a.c")),
    }
    assert found["1.o"]["output"] == str(folder / "1.o")
