# SPDX-License-Identifier: Apache-2.0
"""A real build under the tracer: GNU make and tcc, both for Windows, build tcc's library and Lua.

What make prints is the oracle: each command with the directory that it runs in.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sources
from windows import tools
from windows.wine import Done, Wine, read_spec, windows_path

CAS = Path(sys.executable).with_name("cas")
MAKEFILE = """\
TCC := $(CURDIR)/tcc/tcc.exe
RUNTIME := libtcc1 crt1 crt1w wincrt1 dllcrt1 dllmain chkstk alloca86_64
.PHONY: all lua
all: lua hello.exe
lua: tcc/lib/libtcc1.a
	$(MAKE) -C $(LUA)/src CC="$(TCC) -std=gnu99" AR="$(TCC) -ar rcs" RANLIB=rem LIBS= \\
		LUA_T=lua.exe LUAC_T=luac.exe lua.exe luac.exe
tcc/lib/libtcc1.a: $(RUNTIME:%=runtime/%.o)
	$(TCC) -ar rcs $@ $^
runtime/%.o: runtime/%.c
	$(TCC) -c $< -o $@
runtime/%.o: runtime/%.S
	$(TCC) -c $< -o $@
hello.exe: tcc/lib/libtcc1.a
	$(file >hello.rsp,-DGREETING="\\"good day\\"" hello.c)
	$(TCC) -o $@ @hello.rsp
	cmd /c del hello.rsp
"""
HELLO = "#include <stdio.h>\nint main(void) { return puts(GREETING) < 0; }\n"
RESPONSE = '-DGREETING="\\"good day\\"" hello.c\r\n'
MOVED = re.compile(r"make(?:\[\d+\])?: (Entering|Leaving) directory '(.*)'")


@dataclass(frozen=True, slots=True)
class Build:
    """A build that was traced, parsed and post-processed."""

    folder: Path
    done: Done

    def cas(self, *words: str) -> str:
        done = subprocess.run(
            [CAS, *words], cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def reported(self) -> list[tuple[str, list[str]]]:
        """Return directory and words of the commands of tcc that make printed, sorted."""
        places, found = [windows_path(self.folder)], []
        for line in self.done.out.splitlines():
            if moved := MOVED.fullmatch(line):
                if moved[1] == "Entering":
                    places.append(moved[2].replace("/", "\\"))
                else:
                    places.pop()
            elif "/tcc.exe " in line.partition(" -")[0] + " ":
                found.append((places[-1], shlex.split(line)))
        return sorted(found)

    def sources(self) -> list[str]:
        """Return the sources that those commands compile, sorted."""
        found = [r"\hello.c"]  # its name is in the response file
        prefix = windows_path(self.folder)
        for directory, words in self.reported():
            below = directory.removeprefix(prefix) + "\\"
            names = (word for word in words if word.endswith((".c", ".S")))
            found += [below + name.replace("/", "\\") for name in names]
        return sorted(found)


@pytest.fixture(scope="module")
def build(wine: Wine, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Return the build of Lua by make.exe and tcc.exe."""
    work, folder = tmp_path_factory.mktemp("tools"), tmp_path_factory.mktemp("lua")
    tools.build_make(folder / "make.exe", work / "make")
    tools.build_tcc(folder / "tcc", work / "tcc")
    tools.put_runtime(folder / "runtime")
    lua = sources.fetch("lua5.4", folder)
    (folder / "Makefile").write_text(f"LUA := {lua.name}\n{MAKEFILE}")
    (folder / "hello.c").write_text(HELLO)
    options = ("--nfsdb", ".nfsdb", "--env", "-c", "tcc", "-o", "spec.json", "--")
    done = wine.trace(folder, *options, "make.exe", "-j2", "-Oline")
    assert done.status == 0, done
    it = Build(folder, done)
    it.cas("parse")
    it.cas("pp")
    return it


def commands(build: Build) -> list[dict[str, Any]]:
    shown = json.loads(build.cas("export", "compile_commands"))
    assert isinstance(shown, list)
    return shown


def test_the_build_made_programs_that_run(build: Build, wine: Wine) -> None:
    [lua] = build.folder.glob("*/src/lua.exe")
    assert wine.run([lua, "-e", "print(6 * 7)"], build.folder).out.strip() == "42"
    assert wine.run([build.folder / "hello.exe"], build.folder).out.strip() == "good day"


def test_each_command_is_in_the_build_spec_once_and_in_its_directory(build: Build) -> None:
    items = read_spec(build.folder / "spec.json")
    assert sorted((item["directory"], item["arguments"]) for item in items) == build.reported()
    assert len(items) > 40


def test_a_response_file_that_the_build_removed_is_in_it(build: Build) -> None:
    assert not (build.folder / "hello.rsp").exists()
    [item] = [item for item in read_spec(build.folder / "spec.json") if "respfile" in item]
    assert item["respfile"] == RESPONSE
    [entry] = [entry for entry in commands(build) if entry["file"].endswith("hello.c")]
    assert entry["arguments"][1:] == ["-o", "hello.exe", '-DGREETING="good day"', "hello.c"]


def test_each_source_was_compiled_once(build: Build) -> None:
    prefix = windows_path(build.folder)
    compiled = sorted(line.removeprefix(prefix) for line in build.cas("compiled").splitlines())
    assert compiled == build.sources()
    assert sorted(entry["file"].removeprefix(prefix) for entry in commands(build)) == compiled


def test_the_tree_has_every_command_below_its_make(build: Build) -> None:
    shown = build.cas("tree").splitlines()
    assert shown[0] == "make.exe -j2 -Oline"
    shown_at = [len(line) - len(line.lstrip()) for line in shown if "/tcc.exe -" in line]
    in_src = [directory.endswith(r"\src") for directory, _ in build.reported()]
    assert shown_at.count(2) == in_src.count(False) + 1  # and `make -C`, which has the name
    assert shown_at.count(4) == in_src.count(True)


def test_the_database_has_the_build_spec_of_the_tracer(build: Build) -> None:
    build.cas("export", "build-spec", "-c", "tcc", "-o", "exported.json")
    ours, traced = (read_spec(build.folder / name) for name in ("exported.json", "spec.json"))
    assert ours == traced
