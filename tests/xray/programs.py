# SPDX-License-Identifier: Apache-2.0
"""Instrumented programs for any architecture, made here, and what other tools say of them.

clang emits sleds without a runtime, and lld links for every target. Where llvm-xray does not know a
target, the labels of the sleds are made symbols, and readelf says where they are.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from etrace.xray import InstrumentationMap

CLANG, LINKER, LLVM_XRAY, READELF = "clang-19", "ld.lld-19", "llvm-xray-19", "llvm-readelf-19"
PACKAGES = "clang-19 lld-19 llvm-19 libclang-rt-19-dev"
#: The line of a declaration is not that of the brace, which the line table has.
SOURCE = """\
#define XRAY __attribute__((xray_always_instrument, noinline))
XRAY int first(int x)
{
	return x * 3 + 1;
}
XRAY static int second(int x)
{
	return first(x) + x;
}
XRAY int third(int x)
{
	return second(x) ^ 5;
}
XRAY int alike_a(int x)
{
	return x * 77;
}
XRAY int alike_b(int x)
{
	return x * 77;
}
XRAY int tail(int x)
{
	return third(x + alike_a(x) + alike_b(x));
}
void _start(void)
{
	tail(1);
}
"""
LINES = {"first": 2, "second": 6, "third": 10, "alike_a": 14, "alike_b": 18, "tail": 22}
EXTRACT = re.compile(
    r"- \{ id: (\d+), address: 0x(\w+), function: 0x(\w+), kind: ([\w-]+), "
    r"always-instrument: (\w+), function-name: (?:'(.*)'|(\S+)), version: (\d) \}"
)
#: what llvm-xray's extract says of a sled: id, address, function, kind, always, name, version
Row = tuple[int, int, int, str, bool, str, int]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a tool of LLVM or binutils; return what it prints."""
    if shutil.which(str(command[0])) is None:
        pytest.fail(f"{command[0]} is missing: apt-get install {PACKAGES}")
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=True
    ).stdout


def compiled(place: Path, *flags: str, target: str = "x86_64-linux-gnu", out: str = "a.o") -> Path:
    """Compile the source with instrumentation for a target."""
    (place / "a.c").write_text(SOURCE)
    run(
        CLANG, f"--target={target}", "-O1", "-fPIC", "-ffunction-sections", "-fxray-instrument",
        *flags, "-c", "a.c", "-o", out, cwd=place,
    )  # fmt: skip
    return place / out


def assembled(place: Path, text: str, target: str, out: str = "a.o") -> Path:
    """Assemble a text for a target."""
    (place / "a.s").write_text(text)
    run(CLANG, f"--target={target}", "-c", "a.s", "-o", out, cwd=place)
    return place / out


def linked(place: Path, *flags: str | Path, out: str = "program") -> Path:
    """Link without any library."""
    run(LINKER, "-e", "_start", "--unresolved-symbols=ignore-all", *flags, "-o", out, cwd=place)
    return place / out


def parse_extract(text: str) -> list[Row]:
    """Read what llvm-xray's extract printed."""
    found = []
    for line in text.splitlines()[1:-1]:
        match = EXTRACT.fullmatch(line)
        assert match, line
        found.append(
            (int(match[1]), int(match[2], 16), int(match[3], 16), match[4], match[5] == "true",
             match[6] or match[7], int(match[8]))
        )  # fmt: skip
    return found


def llvm_rows(program: Path) -> list[Row]:
    """Ask llvm-xray for the map of a program."""
    return parse_extract(run(LLVM_XRAY, "extract", "-s", program, cwd=program.parent))


def rows(found: InstrumentationMap) -> list[Row]:
    """Return a map as llvm-xray lists it."""
    return [
        (s.function_id, s.address, s.function, s.kind_name, s.always_instrument,
         found.name(s.function_id), s.version)
        for s in found.sleds
    ]  # fmt: skip


def symbols(program: Path) -> dict[str, int]:
    """Return the values of a program's symbols, by readelf."""
    table = run(READELF, "-sW", program, cwd=program.parent)
    lines = (line.split() for line in table.splitlines())
    return {
        words[7]: int(words[1], 16) for words in lines if len(words) == 8 and words[1].isalnum()
        and words[0].rstrip(":").isdigit()
    }  # fmt: skip


def show_labels(assembly: str) -> str:
    """Make symbols of the labels that a compiler's assembly has for sleds and functions."""
    return re.sub(
        r"(?:\.L|\$)(tmp|xray_sled_|xray_sled_begin|func_begin)(\d+)", r"shown_\1\2", assembly
    )


def written_sleds(assembly: str) -> list[tuple[str, str, int]]:
    """Return (label of the sled, of its function, kind) of each entry that an assembly has."""
    entry = re.compile(
        r"\(?(shown_\w+)\)?-.*\n"  # its first word, relative to itself
        r".*?\(?(shown_func_begin\d+)\)?-.*\n"
        r"\s*\.byte\s+(?:0x)?(\d+)"
    )
    return [(m[1], m[2], int(m[3])) for m in entry.finditer(assembly)]
