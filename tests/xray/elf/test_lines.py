# SPDX-License-Identifier: Apache-2.0
"""Declarations out of every form of debug information that clang and lld write."""

from __future__ import annotations

import faulthandler
from array import array
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.xray import line_table, subprograms
from xray import programs, samples

from etrace.xray import InstrumentationMap
from etrace.xray.elf.lines import read_declarations
from etrace.xray.elf.sections import DebugSections, read_debug_sections

DECLARED = {name: f"a.c:{line}" for name, line in programs.LINES.items()}
#: what the line table has is the brace
BRACES = {name: f"a.c:{line + 1}" for name, line in programs.LINES.items()}


def places(program: Path) -> dict[str, str]:
    """Return the places of all functions by name."""
    found = InstrumentationMap.from_elf(program)
    return {found.name(i): str(found.declaration(i)) for i in range(1, found.n_functions + 1)}


@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("kind", ["-shared", "-static"])
def test_declarations_are_found_in_every_form(tmp_path: Path, version: str, kind: str) -> None:
    for flags, wanted in (
        (("-g",), DECLARED),
        (("-g", "-gdwarf64"), DECLARED),
        (("-g", "-gsplit-dwarf"), DECLARED),
        (("-gline-tables-only", "-O0"), BRACES),
        ((), dict.fromkeys(DECLARED, "None")),
    ):
        form = f"-gdwarf-{version}" if flags else "-g0"
        made = programs.compiled(tmp_path, form, *flags)
        assert places(programs.linked(tmp_path, kind, made)) == wanted, flags


def test_a_lost_dwo_file_leaves_the_line_table(tmp_path: Path) -> None:
    made = programs.compiled(tmp_path, "-g", "-gsplit-dwarf", "-O0")
    program = programs.linked(tmp_path, "-shared", made)
    (tmp_path / "a.dwo").unlink()
    assert places(program) == BRACES


@pytest.mark.parametrize("how", ["zlib", "zstd", "zlib-gnu"])
def test_compressed_sections_are_unpacked(tmp_path: Path, how: str) -> None:
    program = programs.linked(tmp_path, "-shared", programs.compiled(tmp_path, "-g"))
    before = program.stat().st_size
    # small sections stay unchanged
    option = f"--compress-debug-sections={how}"
    programs.run("objcopy", option, program, cwd=tmp_path)
    assert program.stat().st_size < before
    assert places(program) == DECLARED


def test_big_endian_and_32_bits(tmp_path: Path) -> None:
    for target in ("mips-linux-gnu", "mips64-linux-gnuabi64", "hexagon-linux"):
        for flag, wanted in (("-g", DECLARED), ("-gline-tables-only", BRACES)):
            made = programs.compiled(tmp_path, flag, "-O0", target=target)
            assert places(programs.linked(tmp_path, "-shared", made)) == wanted, (target, flag)


def line_of(entry: DIE) -> int:
    """Return the line of the first entry that has one, on the way to a declaration."""
    for link in ("DW_AT_specification", "DW_AT_abstract_origin"):
        if "DW_AT_decl_line" not in entry.attributes and link in entry.attributes:
            return line_of(entry.get_DIE_from_attribute(link))
    return int(entry.attributes["DW_AT_decl_line"].value)


def test_members_are_declared_where_pyelftools_finds_them() -> None:
    """Their definitions leave out what the declaration in the class says."""
    program = samples.program("mt_pie19")
    found = InstrumentationMap.from_elf(program)
    with program.open("rb") as stream:
        units = ELFFile(stream).get_dwarf_info().iter_CUs()
        wanted = {
            entry.attributes["DW_AT_low_pc"].value: line_of(entry)
            for unit in units
            for entry in unit.iter_DIEs()
            if entry.tag == "DW_TAG_subprogram" and "DW_AT_low_pc" in entry.attributes
        }
    got = {address: one.line for address, one in found.declarations.items()}
    assert got == {address: wanted[address] for address in found.addresses}


def test_a_file_and_a_line_may_be_in_different_entries() -> None:
    unit_entry = [1, 0x11, 1, 0x10, 0x17, 0, 0]  # statements
    declared = [2, 0x2E, 0, 0x3A, 0x0B, 0x3B, 0x0B, 0, 0]  # file, line
    concrete = [3, 0x2E, 0, 0x11, 0x01, 0x47, 0x13, 0x3B, 0x0B, 0, 0, 0]  # address, that one, line
    abbrev = bytes([*unit_entry, *declared, *concrete])
    entries = bytes([1]) + (77).to_bytes(4, "little")
    declaration = 11 + len(entries)
    entries += bytes([2, 9, 40, 3]) + (0x1234).to_bytes(8, "little")
    entries += declaration.to_bytes(4, "little") + bytes([55])
    body = bytes([4, 0, 0, 0, 0, 0, 8]) + entries
    info = len(body).to_bytes(4, "little") + body
    found = subprograms.find(info, abbrev, b"", array("Q", [0x1000, 0x1234, 0x1235]))
    assert found == {0x1234: declaration + 3}
    offsets = array("Q", [declaration, declaration + 3])
    assert subprograms.describe(info, abbrev, offsets) == [
        (9, 40, None, 77),
        (None, 55, declaration, 77),
    ]


@pytest.fixture(scope="module")
def sound() -> tuple[DebugSections, list[int]]:
    """Return debug information of a program and its functions."""
    program = samples.program("mt_pie19")
    with program.open("rb") as stream:
        sections = read_debug_sections(ELFFile(stream))
    return sections, sorted(InstrumentationMap.from_elf(program).addresses)


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(seed=st.integers(0, 2**32), cut=st.booleans())
def test_damage_costs_declarations_and_nothing_else(
    sound: tuple[DebugSections, list[int]], seed: int, cut: bool
) -> None:
    sections, wanted = sound
    rng = Random(seed)
    parts = [bytearray(part) for part in (sections.info, sections.abbrev, sections.line)]
    for part in parts:
        for _ in range(rng.randrange(6)):
            part[rng.randrange(len(part))] = rng.randrange(256)
        del part[rng.randrange(len(part)) if cut else len(part) :]
    info, abbrev, line = parts
    entries = subprograms.find(info, abbrev, sections.addr, array("Q", wanted))
    assert set(entries) <= set(wanted)
    offsets = array("Q", sorted(entries.values()))
    assert len(subprograms.describe(info, abbrev, offsets)) == len(offsets)
    for table, number, n in line_table.first_lines(line, array("Q", wanted), 64).values():
        assert n > 0
        line_table.file_name(line, sections.line_str, sections.strings, table, number)


def test_one_table_for_thousands_of_units_is_not_read_for_each() -> None:
    """Each unit of 12 bytes names another place in a megabyte of abbreviations."""
    unit = bytes([8, 0, 0, 0, 4, 0])
    n = 40_000
    info = b"".join(unit + i.to_bytes(4, "little") + bytes([8, 0]) for i in range(n))
    abbrev = bytes([1, 0x2E, 0, 0x3A, 0x0B, 0, 0]) * 150_000
    assert subprograms.find(info, abbrev, b"", array("Q", [1])) == {}


@pytest.fixture
def ended() -> Iterator[None]:
    """End the tests when native code that holds the interpreter does not come back."""
    faulthandler.dump_traceback_later(100, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def uleb(value: int) -> bytes:
    return bytes([value & 0x7F | 0x80]) + uleb(value >> 7) if value > 0x7F else bytes([value])


def line_table_5(*, directories: bytes, files: bytes) -> bytes:
    """Return a table of version 5 without a program; both begin with their formats."""
    after = bytes([1, 1, 1, 0, 1, 1]) + directories + files
    body = bytes([5, 0, 8, 0]) + len(after).to_bytes(4, "little") + after
    return len(body).to_bytes(4, "little") + body


@pytest.mark.usefixtures("ended")
@pytest.mark.parametrize("form", [0x19, 0x21], ids=["flag_present", "implicit_const"])
@pytest.mark.parametrize("count", [2**63, 2**64 - 1])
def test_entries_that_take_no_bytes_are_not_counted_one_by_one(form: int, count: int) -> None:
    many = bytes([1, 1, form]) + uleb(count)
    named = bytes([1, 1, 0x08]) + uleb(2) + b"a.c\0b.c\0"
    line = line_table_5(directories=many, files=named)
    assert line_table.file_name(line, b"", b"", 0, 1) == b"b.c"
    assert (
        line_table.file_name(line_table_5(directories=b"\0\0", files=many), b"", b"", 0, 2**62)
        is None
    )


def test_a_string_longer_than_a_path_is_no_name() -> None:
    files = bytes([1, 1, 0x1F]) + uleb(2) + (0).to_bytes(4, "little") + (5000).to_bytes(4, "little")
    line, strings = line_table_5(directories=b"\0\0", files=files), b"x" * 5000 + b"a.c\0"
    assert line_table.file_name(line, strings, b"", 0, 0) is None
    assert line_table.file_name(line, strings, b"", 0, 1) == b"a.c"


def unit_of(entries: bytes) -> bytes:
    body = bytes([4, 0, 0, 0, 0, 0, 8]) + entries
    return len(body).to_bytes(4, "little") + body


@pytest.mark.usefixtures("ended")
def test_the_entry_of_a_unit_is_read_once() -> None:
    """Its name is 20 MB long, and 20000 functions follow it."""
    abbrev = bytes([1, 0x11, 0, 0x03, 0x08, 0, 0, 2, 0x2E, 0, 0x3B, 0x0B, 0, 0, 0])
    top = b"\1" + b"x" * 20_000_000 + b"\0"
    info = unit_of(top + b"\2\7" * 20_000)
    offsets = array("Q", range(11 + len(top), len(info), 2))
    assert subprograms.describe(info, abbrev, offsets) == [(None, 7, None, None)] * 20_000


@pytest.mark.usefixtures("ended")
def test_entries_that_overlap_are_not_read_to_their_ends_for_ever() -> None:
    """Each byte of 4 MB is said to begin an entry with a string."""
    abbrev = bytes([1, 0x2E, 0, 0x03, 0x08, 0, 0, 0])
    info = unit_of(b"\1" * 4_000_000 + b"\0")
    answers = subprograms.describe(info, abbrev, array("Q", range(11, 200_011)))
    assert answers[0] == (None, None, None, None)
    assert answers[-1] is None


@pytest.mark.usefixtures("ended")
def test_attributes_that_take_no_bytes_cost_nothing() -> None:
    """Each of 20 million functions of one byte has 500 of them."""
    flags = bytes([0x3C, 0x19]) * 500
    abbrev = bytes([1, 0x11, 0, 0, 0, 2, 0x2E, 0, *flags, 0, 0, 0])
    assert subprograms.find(unit_of(b"\1" + b"\2" * 20_000_000), abbrev, b"", array("Q", [1])) == {}


def test_a_program_without_debug_information_has_no_declarations(tmp_path: Path) -> None:
    program = programs.linked(tmp_path, "-shared", programs.compiled(tmp_path, "-g0"))
    with program.open("rb") as stream:
        assert read_declarations(ELFFile(stream), frozenset([1, 2])) == {}
