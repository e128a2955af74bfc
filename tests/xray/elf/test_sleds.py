# SPDX-License-Identifier: Apache-2.0
"""Maps of files of every architecture that clang instruments or lld links: addresses of symbols."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from xray import programs

from etrace.errors import EtraceError
from etrace.xray import InstrumentationMap

#: what clang 19 instruments, and whether llvm-xray 19 reads it
TARGETS = {
    "x86_64-linux-gnu": True,
    "aarch64-linux-gnu": True,
    "armv7a-linux-gnueabihf": True,
    "powerpc64le-linux-gnu": True,
    "loongarch64-linux-gnu": True,
    "hexagon-linux": False,
    "mips-linux-gnu": False,
    "mipsel-linux-gnu": False,
    "mips64-linux-gnuabi64": False,
    "mips64el-linux-gnuabi64": False,
}
#: what it does not (thumb, or later versions do): maps written by hand
WRITTEN = {
    "thumbv7a-linux-gnueabihf": 4,
    "armebv7a-linux-gnueabi": 4,
    "i386-linux-gnu": 4,
    "powerpc-linux-gnu": 4,
    "aarch64_be-linux-gnu": 8,
    "powerpc64-linux-gnu": 8,
    "riscv64-linux-gnu": 8,
    "s390x-linux-gnu": 8,
    "mips64el-linux-gnuabi64": 8,
    "x86_64-linux-gnu": 8,
}
FUNCTIONS = ("first", "third", "second", "alike_a", "alike_b", "tail")


@pytest.mark.parametrize("target", TARGETS)
def test_sleds_are_where_the_compiler_put_its_labels(tmp_path: Path, target: str) -> None:
    (tmp_path / "source.c").write_text(programs.SOURCE)
    flags = ("-O1", "-g", "-fPIC", "-ffunction-sections", "-fxray-instrument")
    programs.run(
        programs.CLANG, f"--target={target}", *flags, "-S", "source.c", "-o", "source.s",
        cwd=tmp_path,
    )  # fmt: skip
    text = programs.show_labels((tmp_path / "source.s").read_text())
    made = programs.assembled(tmp_path, text, target)
    for kind in ("-shared", "-static"):
        program = programs.linked(tmp_path, kind, made)
        values = programs.symbols(program)
        wanted = [(values[s], values[f], k) for s, f, k in programs.written_sleds(text)]
        found = InstrumentationMap.from_elf(program)
        assert [(s.address, s.function, s.kind) for s in found.sleds] == wanted, kind
        assert len(wanted) > len(FUNCTIONS), kind
        assert [found.name(i + 1) for i in range(found.n_functions)] == list(FUNCTIONS), kind
        lines = [found.declaration(i + 1) for i in range(found.n_functions)]
        assert [one and one.line for one in lines] == [programs.LINES[f] for f in FUNCTIONS], kind
        if TARGETS[target]:
            assert programs.rows(found) == programs.llvm_rows(program), kind


def written_map(word: int, *, thumb: bool, relative: bool) -> str:
    """Write two functions of two sleds each, with words absolute or relative to themselves."""
    directive = ".8byte" if word == 8 else ".4byte"
    base = " - ." if relative else ""
    out = []
    for i, name in enumerate(("f", "g")):
        out += [
            f'.section .text.{name},"ax",%progbits',
            f".globl {name}",
            f".type {name},%function",
        ]
        out += [".thumb_func"] if thumb else []
        out += [f"{name}:", f"sled_{2 * i}:", ".zero 16", f"sled_{2 * i + 1}:", ".zero 16"]
        out += [
            f".size {name}, 32",
            f'.section xray_instr_map,"awo",%progbits,.text.{name}',
            ".p2align 3",
        ]
        for kind in range(2):
            out += [f"{directive} sled_{2 * i + kind}{base}", f"{directive} {name}{base}"]
            out += [f".byte {kind}, 1, {2 if relative else 1}", f".zero {2 * word - 3}"]
    return "\n".join([*out, ""])


def check_written(program: Path) -> None:
    """Compare the map of a written program with its symbols."""
    values = programs.symbols(program)
    found = InstrumentationMap.from_elf(program)
    got = [(s.function_id, s.address, s.function, s.kind) for s in found.sleds]
    assert got == [
        (1 + i // 2, values[f"sled_{i}"], values["fg"[i // 2]] & ~1, i % 2) for i in range(4)
    ]
    assert [found.name(i) for i in (1, 2)] == ["f", "g"]


@pytest.mark.parametrize("target", WRITTEN)
def test_words_relative_to_themselves_need_no_architecture(tmp_path: Path, target: str) -> None:
    thumb = target.startswith("thumb")
    text = written_map(WRITTEN[target], thumb=thumb, relative=True)
    made = programs.assembled(tmp_path, text, target)
    program = programs.linked(tmp_path, "-shared", "-Bsymbolic", made)
    check_written(program)
    if thumb:  # the file really has bit 0 set
        assert programs.symbols(program)["f"] & 1


RELOCATIONS = {
    "RELA, nothing in the words": ("-shared", "-Bsymbolic"),
    "RELA, and the words": ("-pie", "--apply-dynamic-relocs"),
    "RELR": ("-shared", "-Bsymbolic", "-z", "pack-relative-relocs"),
    "REL": ("-pie", "-z", "rel"),
    "of symbols that may be replaced": ("-shared",),
    "of such symbols, REL": ("-shared", "-z", "rel"),
    "none": ("-static",),
}


@pytest.mark.parametrize(
    "target", ["x86_64-linux-gnu", "i386-linux-gnu", "mips64el-linux-gnuabi64"]
)
def test_absolute_words_are_relocated(tmp_path: Path, target: str) -> None:
    text = written_map(WRITTEN[target], thumb=False, relative=False)
    made = programs.assembled(tmp_path, text, target)
    for how, flags in RELOCATIONS.items():
        program = programs.linked(tmp_path, *flags, "-z", "notext", made)
        relocations = programs.run(programs.READELF, "-r", program, cwd=tmp_path)
        assert ("Relocation section" in relocations) == (how != "none"), how
        assert (".relr.dyn" in relocations) == (how == "RELR"), how
        check_written(program)


def test_relocations_of_an_unknown_form_are_reported(tmp_path: Path) -> None:
    made = programs.assembled(
        tmp_path, written_map(8, thumb=False, relative=False), "x86_64-linux-gnu"
    )
    packed = ("-shared", "-Bsymbolic", "-z", "notext", "--pack-dyn-relocs=android")
    with pytest.raises(EtraceError, match="relocations of an unknown form"):
        InstrumentationMap.from_elf(programs.linked(tmp_path, *packed, made))


def damaged(sound: bytes, rng: Random) -> bytes:
    """Return a copy of a file with wrong bytes in its header, section headers or anywhere."""
    data = bytearray(sound)
    for _ in range(rng.randrange(1, 8)):
        ranges = (range(64), range(len(data) - 3000, len(data)), range(len(data)))
        data[rng.choice(rng.choice(ranges))] = rng.choice([0, 1, 127, 255])
    return bytes(data[: rng.randrange(len(data))] if rng.random() < 0.15 else data)


def test_a_damaged_program_is_refused_or_read(tmp_path: Path) -> None:
    here = "-fdebug-compilation-dir=."  # the same bytes wherever the test runs
    made = programs.compiled(tmp_path, "-g", here)
    sound = programs.linked(tmp_path, "-shared", made).read_bytes()
    path, rng = tmp_path / "damaged", Random(1)
    n_refused = 0
    for _ in range(250):
        path.write_bytes(damaged(sound, rng))
        try:
            found = InstrumentationMap.from_elf(path)
        except EtraceError:
            n_refused += 1
            continue
        for number in range(1, found.n_functions + 1):
            assert found.name(number)
            found.declaration(number)
    assert 20 < n_refused < 230
