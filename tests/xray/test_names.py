# SPDX-License-Identifier: Apache-2.0
"""Maps of programs, and the names of function ids by them."""

from __future__ import annotations

import lzma
import struct
import subprocess
import time
from pathlib import Path

import pytest
from xray import programs, samples
from xray.samples import MT, MT_MAP, TAIL, run, session

from etrace.errors import EtraceError
from etrace.xray import InstrumentationMap
from etrace.xray.account import account
from etrace.xray.elf.demangle import demangle, is_simple
from etrace.xray.names import Names, read_maps
from etrace.xray.session import Selection


@pytest.mark.parametrize("name", samples.PROGRAMS)
def test_the_map_is_what_llvm_xray_extracts(name: str) -> None:
    wanted = programs.parse_extract(samples.oracle(f"{name}.extract"))
    assert programs.rows(InstrumentationMap.from_elf(samples.program(name))) == wanted


def test_places_are_those_of_the_declarations() -> None:
    found = InstrumentationMap.from_elf(samples.program("mt_pie19"))
    places = {found.name(i): str(found.declaration(i)) for i in range(1, found.n_functions + 1)}
    source = (samples.DATA / "src" / "mt.cpp").read_text().splitlines()
    for name, place in places.items():
        line = int(place.rpartition(":")[2])
        plain = "lam" if "$_0" in name else name.split("(")[0].split("::")[-1].split("<")[0]
        assert plain.split(" ")[-1] in source[line - 1], (name, place)


def test_line_tables_alone_give_the_first_line_that_is_not_0() -> None:
    found = InstrumentationMap.from_elf(samples.program("tail_pie19"))
    assert found.declaration(1) is not None
    assert all(d is None or d.line > 0 for d in map(found.declaration, range(1, 8)))


def make_elf(tmp_path: Path, words: list[tuple[int, int, int, int]], bits: int, order: str) -> Path:
    """Write an ELF file with only a map: (sled, function, kind, version) each."""
    word = "Q" if bits == 64 else "I"
    padding = 13 if bits == 64 else 5
    data = b"".join(
        struct.pack(f"{order}{word}{word}BBB{padding}x", s, f, kind, 1, version)
        for s, f, kind, version in words
    )
    names = b"\0xray_instr_map\0.shstrtab\0"
    head = 64 if bits == 64 else 52
    where = head + len(data)
    table = where + len(names)
    ident = b"\x7fELF" + bytes([2 if bits == 64 else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    machine = 62
    if bits == 64:
        ehdr = struct.pack(
            order + "HHIQQQIHHHHHH", 3, machine, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2
        )
        section = order + "IIQQQQIIQQ"
    else:
        ehdr = struct.pack(
            order + "HHIIIIIHHHHHH", 3, machine, 1, 0, 0, table, 0, 52, 0, 0, 40, 3, 2
        )
        section = order + "IIIIIIIIII"
    sections = struct.pack(section, *[0] * 10)
    sections += struct.pack(section, 1, 1, 2, 0x1000, head, len(data), 0, 0, 1, 0)
    sections += struct.pack(section, 16, 3, 0, 0, where, len(names), 0, 0, 1, 0)
    path = tmp_path / "map.elf"
    path.write_bytes(ident + ehdr + data + names + sections)
    return path


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["<", ">"])
def test_absolute_and_relative_words_mean_the_same(tmp_path: Path, bits: int, order: str) -> None:
    mask, word = (1 << bits) - 1, bits // 8
    places = [(0x500, 0x500), (0x520, 0x500), (0x600, 0x600), (0x700, 0x500)]
    absolute = [(s, f, i % 2, 0) for i, (s, f) in enumerate(places)]
    relative = [
        ((s - 0x1000 - 4 * word * i) & mask, (f - 0x1000 - 4 * word * i - word) & mask, i % 2, 2)
        for i, (s, f) in enumerate(places)
    ]
    for words in (absolute, relative):
        found = InstrumentationMap.from_elf(make_elf(tmp_path, words, bits, order))
        assert [(s.address, s.function) for s in found.sleds] == places
        assert [s.function_id for s in found.sleds] == [1, 1, 2, 3]
        assert found.name(1) == "@(500)"
        assert found.name(9) == "#9"


COMPILED = """
__attribute__((section("xray_instr_map"), used)) static const struct {
	void *sled, *function; unsigned char kind, always, version, pad[13];
} map[] = { { %s, %s, 0, 1, 1, {} }, { %s, %s, 1, 1, 1, {} } };
"""


def test_relocations_of_a_position_independent_binary_are_applied(tmp_path: Path) -> None:
    source = "int f(void) { return 1; }\nint main(void) { return f(); }\n"
    source += COMPILED % ("f", "f", "main", "main")
    (tmp_path / "a.c").write_text(source)
    for flags in (["-pie", "-fPIE"], ["-no-pie", "-fno-pie"], ["-shared", "-fPIC"]):
        out = tmp_path / "a.out"
        command = ["gcc", "-O0", *flags, "a.c", "-o", str(out)]
        subprocess.run(command, cwd=tmp_path, check=True)
        found = InstrumentationMap.from_elf(out)
        assert [found.name(i) for i in (1, 2)] == ["f", "main"], flags


def test_names_come_from_the_debug_file_of_a_stripped_binary(tmp_path: Path) -> None:
    stripped, debug = tmp_path / "prog", tmp_path / "prog.debug"
    original = samples.program("mt_pie19")
    subprocess.run(["objcopy", "--only-keep-debug", original, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", original, stripped], check=True)
    assert InstrumentationMap.from_elf(stripped).name(6).startswith("@(")
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", stripped], cwd=tmp_path, check=True)
    linked, whole = InstrumentationMap.from_elf(stripped), InstrumentationMap.from_elf(original)
    ids = range(1, whole.n_functions + 1)
    assert [linked.name(i) for i in ids] == [whole.name(i) for i in ids]
    assert [linked.declaration(i) for i in ids] == [whole.declaration(i) for i in ids]
    with pytest.raises(EtraceError, match="is a debug file"):
        InstrumentationMap.from_elf(debug)


def test_names_come_from_the_build_id_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.c").write_text("int f(void) { return 1; }\nint main(void) { return f(); }\n"
                                  + COMPILED % ("f", "f", "main", "main"))  # fmt: skip
    command = ["gcc", "-Wl,--build-id=0xabcdef0123456789", "a.c", "-o", "prog"]
    subprocess.run(command, cwd=tmp_path, check=True)
    place = tmp_path / "debug" / ".build-id" / "ab"
    place.mkdir(parents=True)
    debug = place / "cdef0123456789.debug"
    subprocess.run(["objcopy", "--only-keep-debug", "prog", debug], cwd=tmp_path, check=True)
    subprocess.run(["strip", "prog"], cwd=tmp_path, check=True)
    assert InstrumentationMap.from_elf(tmp_path / "prog").name(1).startswith("@(")
    monkeypatch.setattr("etrace.xray.elf.symbols.DEBUG_ROOT", tmp_path / "debug")
    found = InstrumentationMap.from_elf(tmp_path / "prog")
    assert [found.name(i) for i in (1, 2)] == ["f", "main"]


def test_names_come_from_packed_symbols(tmp_path: Path) -> None:
    """As Fedora packs them: an ELF file with a symbol table, compressed by xz."""
    original, packed = samples.program("mt_pie19"), tmp_path / "symbols.xz"
    subprocess.run(["objcopy", "--strip-debug", original, tmp_path / "symbols"], check=True)
    packed.write_bytes(lzma.compress((tmp_path / "symbols").read_bytes()))
    out = tmp_path / "prog"
    subprocess.run(["objcopy", "--strip-all", original, out], check=True)
    add = f"--add-section=.gnu_debugdata={packed}"
    subprocess.run(["objcopy", add, out], check=True)
    found, whole = InstrumentationMap.from_elf(out), InstrumentationMap.from_elf(original)
    assert [found.name(i) for i in range(1, 11)] == [whole.name(i) for i in range(1, 11)]


def test_compressed_debug_information_is_read(tmp_path: Path) -> None:
    out = tmp_path / "z"
    original = samples.program("mt_pie19")
    subprocess.run(["objcopy", "--compress-debug-sections=zlib", original, out], check=True)
    found, whole = InstrumentationMap.from_elf(out), InstrumentationMap.from_elf(original)
    assert found.declaration(2) == whole.declaration(2) is not None


def test_what_has_no_map_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int x;\n")
    with pytest.raises(EtraceError, match="no section xray_instr_map"):
        InstrumentationMap.from_elf("/bin/true")
    with pytest.raises(EtraceError, match="not a readable ELF file"):
        InstrumentationMap.from_elf(tmp_path / "a.c")
    with pytest.raises(EtraceError, match="cannot read"):
        InstrumentationMap.from_elf(tmp_path / "none")


def test_object_numbers_choose_the_map() -> None:
    program = samples.program("tail_pie19")
    names = Names(read_maps([str(program), f"3={samples.program('mt_pie19')}"]))
    assert names.name(7) == "main"
    assert names.name(3 << 24 | 6) == "main"
    assert names.name(2 << 24 | 6) == f"#{2 << 24 | 6}"
    assert list(names.misfits([7, 900], [])) == [
        "1 function id is not in the map (#900): is it the program that wrote the log?"
    ]


def test_a_map_without_tail_calls_does_not_fit_a_log_with_them() -> None:
    names = Names(read_maps([str(samples.program("rec_nopie19"))]))
    assert any("tail call" in text for text in names.misfits([1], [2]))


def test_a_long_name_is_not_searched_for_references() -> None:
    def seconds(letters: str, length: int) -> float:
        began = time.process_time()
        assert not is_simple("_Z" + letters * (length // len(letters)))
        return time.process_time() - began

    for letters in ("S", "S0", "SA", "T0"):  # 10 times the length: 100 times as long when it is
        assert seconds(letters, 600_000) < 30 * max(seconds(letters, 60_000), 0.005)


def test_mangled_names_are_demangled() -> None:
    assert demangle("_Z4leafi") == "leaf(int)"
    assert demangle("main") == "main"
    assert demangle("_Znonsense") == "_Znonsense"


def bomb(levels: int) -> str:
    """Return a name of ten bytes a level, each of which doubles what it stands for."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    out = "_Z1f1AIiiE"
    for level in range(levels):
        number = digits[level]
        out += f"S_IS{number}_S{number}_E"  # S_ is A, S0_ its first instance
    return out


def test_a_name_that_grows_stays_mangled() -> None:
    inner = "A<int, int>"
    assert demangle(bomb(1)) == f"f({inner}, A<{inner}, {inner} >)"
    limit = (len(bomb(9)) * 64, 4096)
    assert len(demangle(bomb(9))) <= max(limit)
    for levels in (12, 20, 30):
        assert demangle(bomb(levels)) == bomb(levels)
    assert demangle("_Z4leafi") == "leaf(int)"


def test_names_that_grow_leave_the_others(tmp_path: Path) -> None:
    names = [bomb(30).replace("1f", f"{len(str(i)) + 1}f{i}", 1) for i in range(40)]
    functions = [
        f'[[clang::xray_always_instrument]] void f{i}() asm("{name}"); void f{i}() {{}}\n'
        for i, name in enumerate(names)
    ]
    last = "[[clang::xray_always_instrument]] void last(int) {}\nint main() { last(1); }\n"
    (tmp_path / "bombs.cpp").write_text("".join(functions) + last)
    programs.run("clang++-19", "-fxray-instrument", "bombs.cpp", "-o", "bombs", cwd=tmp_path)
    found = InstrumentationMap.from_elf(tmp_path / "bombs")
    shown = {found.name(i) for i in range(1, found.n_functions + 1)}
    assert {"last(int)", *names} <= shown  # without end when they are written out


def test_object_files_have_no_ids_yet(tmp_path: Path) -> None:
    """Whether each function has a section of its own, a group that may be dropped, or none."""
    (tmp_path / "inline.cpp").write_text(
        "[[clang::xray_always_instrument]] inline int f(int x) { return x * x; }\n"
        "int (*kept)(int) = f;\n"
    )
    programs.run("clang++-19", "-fxray-instrument", "-c", "inline.cpp", "-o", "b.o", cwd=tmp_path)
    one, group = programs.compiled(tmp_path), tmp_path / "b.o"
    both = programs.linked(tmp_path, "-r", one, group, out="both.o")
    programs.run("llvm-ar-19", "rc", "lib.a", one, group, cwd=tmp_path)
    for path, n in ((one, 6), (group, 1), (both, 7)):
        with pytest.raises(EtraceError, match=f"object file with {n} sections") as caught:
            InstrumentationMap.from_elf(path)
        assert "executable or shared object" in str(caught.value.hint)
    with pytest.raises(EtraceError, match="archive of object files"):
        InstrumentationMap.from_elf(tmp_path / "lib.a")


def test_functions_are_chosen_by_globs() -> None:
    report = account(session("mt_pie19.fdr", selection=Selection(functions=["leaf*", "main"])))
    assert {row.name for row in report.rows} == {"leaf(int)", "main"}
    with pytest.raises(EtraceError, match="no function matches nothing"):
        account(session("mt_pie19.fdr", selection=Selection(functions=["nothing"])))


def test_a_log_of_another_program_gets_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("account", "-m", str(samples.program("ev_pie19")), MT) == 0
    assert "is it the program that wrote the log?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", f"999={MT_MAP}"], "object 999 is above 255"),
        (["-m", f"0={MT_MAP}", "-m", f"0={MT_MAP}"], "object 0 has a map already"),
        (["-m", f"\N{SUPERSCRIPT TWO}={MT_MAP}"], "cannot read"),
        (["-f", "#\N{SUPERSCRIPT TWO}"], "no function matches"),
        (["-f", "#4294967299"], "no function matches"),  # 3 in its low 32 bits
    ],
)
def test_wrong_options_say_what_is_wrong(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("account", *arguments, TAIL) in (1, 2)
    assert message in capsys.readouterr().err
