# SPDX-License-Identifier: Apache-2.0
"""Names of stripped, folded and fresh programs, beside those that llvm-xray has of whole ones."""

from __future__ import annotations

import lzma
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from xray import programs

from etrace.cli.main import etrace
from etrace.xray import InstrumentationMap

SH_OFFSET = 24  #: of a section header of 64 bits: sh_offset, then sh_size
KINDS = ("-shared", "-pie", "-static")


def names(program: Path) -> list[str]:
    """Return the names of all functions."""
    found = InstrumentationMap.from_elf(program)
    return [found.name(i) for i in range(1, found.n_functions + 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_fresh_programs_have_the_map_that_llvm_xray_extracts(tmp_path: Path, kind: str) -> None:
    made = programs.compiled(tmp_path, "-g")
    program = programs.linked(tmp_path, kind, "--build-id", made)
    assert programs.rows(InstrumentationMap.from_elf(program)) == programs.llvm_rows(program)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stripped_program_is_named_by_what_is_left_of_it(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etrace.xray.elf.symbols.DEBUG_ROOT", tmp_path / "debug")
    made = programs.compiled(tmp_path, "-g")
    identity = "0123456789abcdef"
    whole = programs.linked(tmp_path, kind, f"--build-id=0x{identity}", made, out="whole")
    wanted = [*programs.LINES]
    wanted[1:3] = ["third", "second"]
    assert names(whole) == wanted
    stripped, debug = tmp_path / "stripped", tmp_path / "whole.debug"
    programs.run("objcopy", "--only-keep-debug", whole, debug, cwd=tmp_path)
    programs.run("objcopy", "--strip-all", whole, stripped, cwd=tmp_path)
    # of a shared object the exported ones are left
    is_named = [kind == "-shared" and name != "second" for name in wanted]
    assert [not name.startswith("@(") for name in names(stripped)] == is_named

    place = tmp_path / "debug" / ".build-id" / identity[:2] / f"{identity[2:]}.debug"
    place.parent.mkdir(parents=True)
    place.write_bytes(debug.read_bytes())
    assert names(stripped) == wanted
    place.unlink()

    programs.run("objcopy", "--strip-debug", whole, "symbols", cwd=tmp_path)
    programs.run("xz", "-k", "symbols", cwd=tmp_path)
    add = "--add-section=.gnu_debugdata=symbols.xz"
    programs.run("objcopy", add, stripped, "packed", cwd=tmp_path)
    assert names(tmp_path / "packed") == wanted

    programs.run("objcopy", f"--add-gnu-debuglink={debug}", stripped, "linked", cwd=tmp_path)
    assert names(tmp_path / "linked") == wanted
    found = InstrumentationMap.from_elf(tmp_path / "linked")
    lines = [found.declaration(i + 1) for i in range(len(wanted))]
    assert [one and one.line for one in lines] == [programs.LINES[name] for name in wanted]


def test_folded_functions_are_one_with_the_name_and_place_of_one_of_them(tmp_path: Path) -> None:
    made = programs.compiled(tmp_path, "-g")
    program = programs.linked(tmp_path, "-shared", "--icf=all", made)
    found, values = InstrumentationMap.from_elf(program), programs.symbols(program)
    assert values["alike_a"] == values["alike_b"]
    assert found.addresses == [
        values[name] for name in ("first", "third", "second", "alike_a", "tail")
    ]
    declaration = found.declaration(4)
    assert declaration
    assert declaration.line == programs.LINES[found.name(4)]
    # llvm-xray has the same map; of equal symbols it takes another
    ours, theirs = programs.rows(found), programs.llvm_rows(program)
    assert [(*row[:5], row[6]) for row in ours] == [(*row[:5], row[6]) for row in theirs]


def with_string_table(program: Path, target: Path, *, offset: int = 0, cut: int = 0) -> Path:
    """Copy a program whose .strtab begins `offset` bytes later and is `cut` bytes shorter."""
    data = bytearray(program.read_bytes())
    with program.open("rb") as stream:
        elf = ELFFile(stream)
        number = elf.get_section_index(".strtab")
        assert number is not None
        section = elf.get_section(number)
        at = elf["e_shoff"] + number * elf["e_shentsize"] + SH_OFFSET
        place = section["sh_offset"] + offset, section["sh_size"] - cut
    data[at : at + 16] = struct.pack("<QQ", *place)
    target.write_bytes(data)
    return target


def test_a_name_outside_the_string_table_is_none(tmp_path: Path) -> None:
    made = programs.compiled(tmp_path, "-g", "-fdebug-compilation-dir=.")
    program = programs.linked(tmp_path, "-static", made)
    whole = names(program)
    assert whole == ["first", "third", "second", "alike_a", "alike_b", "tail"]
    addresses = [f"@({a:x})" for a in InstrumentationMap.from_elf(program).addresses]
    outside = with_string_table(program, tmp_path / "outside", offset=1 << 40)
    assert names(outside) == addresses
    for n_cut in range(1, 80):
        cut = names(with_string_table(program, tmp_path / "cut", cut=n_cut))
        assert all(a in (b, c) for a, b, c in zip(cut, whole, addresses, strict=True)), n_cut
    assert cut != whole


# ---- too much in too little ----

FREE_BYTES = 1 << 20
BOMB_BYTES = 4 << 20


@pytest.fixture
def stripped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a program whose names and lines are somewhere else; a MB may come out of anything."""
    monkeypatch.setattr("etrace.parse.unpacking.FREE_BYTES", FREE_BYTES)
    made = programs.compiled(tmp_path)
    program = programs.linked(tmp_path, "-static", made)
    programs.run("objcopy", "--strip-all", program, "stripped", cwd=tmp_path)
    return tmp_path / "stripped"


def messages_of(
    program: Path, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, str]:
    """List the map of a program; returns the status and what was said of it."""
    status = etrace(["xray", "extract", str(program), *options])
    return status, capsys.readouterr().err


def test_symbols_that_take_too_much_are_refused(
    tmp_path: Path, stripped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bomb").write_bytes(lzma.compress(bytes(BOMB_BYTES)))
    add = "--add-section=.gnu_debugdata=bomb"
    programs.run("objcopy", add, stripped, "packed", cwd=tmp_path)
    status, said = messages_of(tmp_path / "packed", capsys)
    assert status == 2
    assert f"{tmp_path}/packed: .gnu_debugdata: unpacked it takes more than 1 MB" in said
    status, said = messages_of(tmp_path / "packed", capsys, "--max-unpacked", "4M")
    assert (status, said) == (0, "")


@pytest.mark.parametrize("how", ["zlib", "zstd", "zlib-gnu"])
def test_a_section_that_takes_too_much_is_refused(
    tmp_path: Path, stripped: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bomb").write_bytes(bytes(BOMB_BYTES))
    programs.run("objcopy", "--add-section=.debug_line=bomb", stripped, "large", cwd=tmp_path)
    programs.run("objcopy", f"--compress-debug-sections={how}", "large", "packed", cwd=tmp_path)
    assert (tmp_path / "packed").stat().st_size < FREE_BYTES
    status, said = messages_of(tmp_path / "packed", capsys)
    assert status == 2
    name = ".zdebug_line" if how == "zlib-gnu" else ".debug_line"
    assert f"{tmp_path}/packed: {name}: unpacked it takes more than 1 MB" in said
    assert "--max-unpacked SIZE" in said


def test_no_other_library_unpacks_what_takes_too_much(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Split units are found by pyelftools, which unpacks all sections of debug information."""
    monkeypatch.setattr("etrace.parse.unpacking.FREE_BYTES", FREE_BYTES)
    made = programs.compiled(tmp_path, "-g", "-gsplit-dwarf", "-O0")
    programs.linked(tmp_path, "-shared", made)
    (tmp_path / "bomb").write_bytes(bytes(BOMB_BYTES))
    programs.run("objcopy", "--add-section=.debug_types=bomb", "program", "large", cwd=tmp_path)
    programs.run("objcopy", "--compress-debug-sections=zlib", "large", "packed", cwd=tmp_path)
    status, said = messages_of(tmp_path / "packed", capsys)
    assert status == 2
    assert f"{tmp_path}/packed: .debug_types: unpacked it takes more than 1 MB" in said
