# SPDX-License-Identifier: Apache-2.0
"""What the suffixes of a language say, as somebody who writes in it expects."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pygments.lexers import get_all_lexers

from etrace.compilers import tools
from etrace.spec import suffixes
from etrace.spec.suffixes import CONFIG, DATA, HEADER, LANGUAGES, OBJECT, SOURCE, kind_of

#: language -> kind -> suffixes and names
EXPECTED: dict[str, dict[str, str]] = {
    "fortran": {SOURCE: ".f .F .for .f77 .f90 .F90 .f95 .f03 .F03 .f08", OBJECT: ".mod .smod"},
    "latex": {SOURCE: ".tex .ltx .sty .cls .dtx .ins .bib .bst", DATA: ".aux .toc .log .pdf .eps"},
    "haskell": {
        SOURCE: ".hs .lhs .hsc .chs",
        HEADER: ".hs-boot .hsig",
        OBJECT: ".hi .dyn_hi .p_hi .dyn_o .p_o .hie .o-boot .hi-boot",
        CONFIG: ".cabal cabal.project",
    },
    "ocaml": {
        SOURCE: ".ml .mll .mly .eliom",
        HEADER: ".mli",
        OBJECT: ".cmi .cmo .cmx .cmt .cmti",
        "library": ".cma .cmxa .cmxs",
        CONFIG: "dune dune-project .opam",
    },
    "javascript": {
        SOURCE: """.js .mjs .cjs .jsx .ts .mts .cts .tsx .vue .svelte .css .scss .sass .less .styl
            .html .coffee""",
        HEADER: ".d.ts .d.mts",
        CONFIG: "package.json package-lock.json tsconfig.json webpack.config.js .babelrc",
        DATA: ".js.map .css.map .png .woff2",
    },
    "ruby": {SOURCE: ".rb .rake .erb", CONFIG: "Gemfile Gemfile.lock Rakefile .gemspec"},
    "r": {SOURCE: ".R .r .Rmd .Rnw .Rd .qmd", DATA: ".rds .rda .RData"},
    "erlang and elixir": {
        SOURCE: ".erl .xrl .yrl .escript .ex .exs .eex",
        HEADER: ".hrl",
        OBJECT: ".beam",
        CONFIG: "rebar.config .app.src",
    },
    "java": {
        SOURCE: ".java .kt .kts .groovy .scala .sc .clj",
        OBJECT: ".class .tasty .kotlin_module .dex",
        "library": ".jar .war .aar .klib",
        CONFIG: "pom.xml build.xml .gradle .gradle.kts .properties .sbt",
    },
    "d": {SOURCE: ".d", HEADER: ".di"},
    "nim": {SOURCE: ".nim", CONFIG: ".nimble .nims"},
    "zig": {SOURCE: ".zig", CONFIG: ".zon"},
    "ada": {SOURCE: ".adb", HEADER: ".ads", OBJECT: ".ali", CONFIG: ".gpr"},
    "perl": {SOURCE: ".pl .pm .xs .t .pod", CONFIG: "Makefile.PL Build.PL"},
    "go": {SOURCE: ".go", CONFIG: "go.mod go.sum go.work"},
    "c#": {SOURCE: ".cs .cshtml .xaml .resx .fs .vb", CONFIG: ".csproj .sln .props .targets"},
    "rust": {SOURCE: ".rs", OBJECT: ".rmeta", "library": ".rlib", CONFIG: "Cargo.toml Cargo.lock"},
    "swift": {SOURCE: ".swift", HEADER: ".swiftinterface", OBJECT: ".swiftmodule .swiftdoc"},
    "emacs lisp": {SOURCE: ".el", OBJECT: ".elc", "library": ".eln"},
    "vala": {SOURCE: ".vala", HEADER: ".vapi .gir"},
    "cython": {SOURCE: ".pyx", HEADER: ".pxd .pxi"},
    "python": {SOURCE: ".py .pyi", OBJECT: ".pyc", "library": ".pyd .so", CONFIG: "pyproject.toml"},
    "cuda": {SOURCE: ".cu .ptx", HEADER: ".cuh", OBJECT: ".cubin .fatbin"},
    "interfaces": {SOURCE: ".proto .thrift .capnp .fbs .idl .graphql .asn1 .sql"},
    "yacc and lex": {SOURCE: ".y .yy .ypp .l .ll .lex .lpp .g4"},
    "qt": {SOURCE: ".ui .qrc .qml .ts", HEADER: ".moc", CONFIG: ".pro .pri", DATA: ".qm"},
    "gettext": {SOURCE: ".po .pot", DATA: ".mo .gmo"},
    "windows": {
        SOURCE: ".rc .idl .mc",
        OBJECT: ".res .obj",
        "library": ".lib .dll",
        "executable": ".exe",
        CONFIG: ".manifest .vcxproj",
    },
    "assembler": {SOURCE: ".s .S .asm .nasm .sx", HEADER: ".inc"},
    "linker scripts": {CONFIG: ".ld .lds .map .ver .x", SOURCE: ".lds.S"},
    "devicetree": {SOURCE: ".dts .dtso", HEADER: ".dtsi", OBJECT: ".dtb .dtbo"},
    "c and c++": {
        SOURCE: ".c .cc .cpp .cxx .c++ .C .ixx .cppm .i .ii .m .mm",
        HEADER: ".h .hh .hpp .hxx .H .ipp .inl .tcc .def .gch .pch .modulemap",
        OBJECT: ".o .lo .os .bc .gcno .dwo .ko .pcm",
        "library": ".a .la .so .so.1.2 .dylib",
    },
    "verilog": {SOURCE: ".v .sv .vhd .vhdl", HEADER: ".vh .svh"},
    "shaders": {SOURCE: ".glsl .frag .hlsl .wgsl .metal", OBJECT: ".spv"},
    "documents": {SOURCE: ".texi .texinfo .rst .adoc .md .org .1", DATA: ".txt .ps"},
    "scripts": {SOURCE: ".sh .bash .zsh .awk .sed .tcl .lua .php .jl .ps1 .bat"},
    "others": {SOURCE: ".pas .cob .lisp .scm .rkt .hx .cr .dart .sml .pro.in .gperf"},
    "make": {
        CONFIG: """Makefile Makefile.am configure.ac CMakeLists.txt meson.build build.ninja Kconfig
            .mk .m4 .cmake .pc .rsp .Plo BUILD .bzl Dockerfile .spec .yml .toml .ini .xml""",
    },
    "unknown": {DATA: ".dat .bin README LICENSE man login data-1.5 foo-1.2 .bin.gz"},
}  # fmt: skip


@pytest.mark.parametrize("language", EXPECTED)
def test_a_language_has_the_kinds_that_its_people_expect(language: str) -> None:
    from etrace.query.rows.file_kinds import by_name

    wrong = []
    for kind, text in EXPECTED[language].items():
        for name in text.split():
            path = f"/w/{'a' * (name.count('.') > 0 and name[0] == '.' and name not in OWN)}{name}"
            found = by_name(path.encode()) or DATA
            if name != ".pro.in" and found != kind:
                wrong.append(f"{path}: {found}, not {kind}")
    assert wrong == []


#: names that begin with a dot
OWN = frozenset((".babelrc",))


def test_pygments_agrees_on_the_languages_of_builds() -> None:
    """Two lists that different people keep: what one calls a language the other does."""
    known, unknown = 0, []
    for name, _, patterns, _ in get_all_lexers(plugins=False):
        ends = [pattern[1:] for pattern in patterns if re.fullmatch(r"\*\.\w+", pattern)]
        if ends and any(kind_of(f"a{end}") for end in ends):
            known += 1
        elif ends:
            unknown.append(f"{name} {' '.join(ends)}")
    assert known > 2 * len(unknown), unknown  # the others are hardly met: Aheui, COMAL-80, ..


def test_what_compilers_compile_is_a_source() -> None:
    """The extensions in etrace/compilers, of each compiler as its manual has them, agree."""
    unknown = set()
    for tool in tools.load():
        for language, extensions in tool.settings.get("languages", {}).items():
            for each in extensions:
                if kind_of(f"a.{each}") not in {SOURCE, HEADER}:
                    unknown.add((language, each))
    assert unknown == {("modula-2", "mod")}  # the same suffix is Fortran's


def test_what_compilers_write_is_not_a_source() -> None:
    written = {each for tool in tools.load() for each in tool.settings.get("objects", ())}
    found = {each for each in written if kind_of(f"a.{each}") == SOURCE}
    assert found == {"s", "ll", "asm"} & found  # text that another compiler reads


def test_no_suffix_is_listed_twice() -> None:
    listed = [s for by in suffixes._OWN.values() for text in by.values() for s in text.split()]
    assert sorted(listed) == sorted(set(listed))


def test_every_language_of_a_list_is_one_of_linguist() -> None:
    known = {line.split("\t")[1] for line in LANGUAGES.read_text().splitlines() if "\t" in line}
    assert (suffixes._CONFIG | suffixes._SOURCES) - known == set()


def test_the_table_is_what_its_program_writes() -> None:
    """The package itself is fetched by `python build-aux/languages.py` alone."""
    import languages  # of build-aux

    text = LANGUAGES.read_text()
    assert text.startswith(languages.HEAD)
    rows = [line.split("\t") for line in text.removeprefix(languages.HEAD).splitlines()]
    given: list[dict[str, object]] = [
        {"type": kind, "name": name, "extensions": words.split()} for kind, name, words in rows[:-1]
    ]
    given[0]["filenames"] = rows[-1][2].split()
    assert languages.render(given) == text
    assert len(rows) > 600


def test_packages_carry_the_table_and_its_licence() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["license"].endswith(" AND MIT")
    assert "LICENSES/MIT.txt" in project["license-files"]
    assert LANGUAGES.is_file()
