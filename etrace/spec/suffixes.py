# SPDX-License-Identifier: Apache-2.0
"""What the name of a file says: its language, and whether it is a source, a header, an object, ..

Languages, their suffixes and file names are those of GitHub Linguist (`languages.tsv`). Linguist
knows neither headers nor files that compilers write, so these are listed here, by language. A
suffix that is listed here is not looked up there. docs/decisions/0087-suffixes.md says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

LANGUAGES = Path(__file__).with_name("languages.tsv")

SOURCE, HEADER, OBJECT, LIBRARY = "source", "header", "object", "library"
EXECUTABLE, CONFIG, DATA = "executable", "config", "data"

#: kind -> language -> suffixes. Upper and lower case differ: .C is C++, .P is automake's.
_OWN: Mapping[str, Mapping[str, str]] = {
    SOURCE: {
        "c": ".C .i .ii .mi .mii .cp .CPP .cppm .sx .rl .re .re2c .gperf .td .tbl",
        "fortran": ".f08 .F08 .f18 .F18 .ftn .FTN .fpp .FPP .for .FOR",
        "elixir": ".eex .heex .leex",
        "yacc and lex": ".y++ .ypp .yxx .lpp .l++ .lxx .ll .xrl .yrl",
        "devicetree": ".dts .dtso",
        "haskell": ".hsc .chs",
        "interfaces": """.idl .odl .capnp .fbs .gresource.xml .wit .asn1 .asn .rnc
            .peg .sbl .cddl""",
        "user interfaces": """.ui .qrc .qml .xaml .axaml .fxml .xib .storyboard .resx .rc .rc2 .dlg
            .glade .blp""",
        "assembler": ".S .asm .nas .masm .ptx",
        "javascript": ".mts .cts .less .styl",
        "tex": ".bst .dbj .mf .mp .Rnw .Snw .rnw",
        "texinfo": ".texi .texinfo .txi",
        "r": ".Rd .Rmd .qmd",
        "d": ".d .dd",  # unless it was made: then it has dependencies for make
    },
    HEADER: {
        "c": """.h .hh .hpp .hxx .h++ .H .hp .HPP .inc .inl .ipp .tcc .tpp .txx .def .gch .pch
            .modulemap""",
        "cuda": ".cuh",
        "ada": ".ads",
        "cython": ".pxd .pxi",
        "d": ".di",
        "devicetree": ".dtsi",
        "erlang": ".hrl",
        "f#": ".fsi",
        "fortran": ".fh .fi",
        "haskell": ".hs-boot .lhs-boot .hsig",
        "ocaml": ".mli .rei .resi",
        "qt": ".moc",
        "ruby": ".rbi .rbs",
        "standard ml": ".sig",
        "swift": ".swiftinterface",
        "typescript": ".d.ts .d.mts .d.cts",
        "vala": ".vapi .gir",
        "verilog": ".vh .svh",
        "cobol": ".cpy",
        "perl": ".ph",
    },
    OBJECT: {
        "c": ".o .obj .lo .os .bc .gcno .dwo .pcm .gcm .ifc",
        "linux": ".ko",
        "ada": ".ali",
        "agda, coq, lean": ".agdai .vo .vos .vok .olean .ilean",
        "cuda": ".cubin .fatbin",
        "devicetree": ".dtb .dtbo",
        "emacs lisp": ".elc",
        "erlang": ".beam",
        "fortran": ".mod .smod",
        "go": ".syso",
        "haskell": """.hi .dyn_hi .p_hi .p_dyn_hi .prof_hi .dyn_o .p_o .p_dyn_o .hie .hi-boot
            .dyn_hi-boot .o-boot .dyn_o-boot""",
        "java": ".class .dex .tasty .kotlin_module .sjsir .nir",
        "lisp": ".fasl .fas .zo",
        "lua": ".luac",
        "ocaml": ".cmi .cmo .cmx .cmt .cmti .cmj",
        "pascal": ".ppu .dcu",
        "python": ".pyc .pyo",
        "rust": ".rmeta",
        "shaders": ".spv .cso .dxil .air",
        "swift": ".swiftmodule .swiftdoc .swiftsourceinfo .swiftdeps",
        "webassembly": ".wasm",
        "windows": ".res",
    },
    LIBRARY: {
        "c": ".a .la .lib .dylib .dll .tbd",
        "emacs lisp": ".eln",
        "java": ".jar .war .ear .aar .jmod .klib",
        "ocaml": ".cma .cmxa .cmxs",
        "python": ".pyd",
        "php": ".phar",
        "rust": ".rlib",
    },
    EXECUTABLE: {"programs": ".exe .com .efi .elf"},
    CONFIG: {
        "make": """.mk .mak .am .ac .m4 .cmake .conf .config .rsp .specs .spec .cmd .dep .P .Po .Plo
            .Tpo .symvers .order""",
        "linker scripts": ".lds .ld .x .map .ver .syms",
        "build systems": """.gyp .gypi .bp .pri .prf .pro .gpr .sbt .gradle .gradle.kts .gemspec
            .podspec .nims .nimble .cabal .opam .rockspec .asd .zon .props .targets .manifest
            .tsbuildinfo
            .config.js .config.mjs .config.cjs .config.ts .app.src .rules""",
        "versions": ".sum .lock .pc",
    },
    DATA: {
        "text": ".txt .log .asc",
        "tex": ".aux .toc .lof .lot",
        "documents": ".ps .eps .epsi .pfa .rtf",
        "gettext": ".mo .gmo",
        "source maps": ".js.map .mjs.map .cjs.map .css.map .d.ts.map .wasm.map",
    },
}


def _names(text: str) -> frozenset[str]:
    return frozenset(" ".join(name.split()) for name in text.split(","))


#: languages whose files say how something is built or how it works
_CONFIG = _names("""
    BitBake, CMake, Cabal Config, Debian Package Control File, Dockerfile, Dotenv, EditorConfig,
    GN, Gentoo Ebuild, Gentoo Eclass, Git Config, Gradle, Gradle Kotlin DSL, HOCON, INI, Ignore
    List, JSON, JSON with Comments, JSON5, Java Properties, Just, Linker Script, Linux Kernel
    Module, M4, M4Sugar, Makefile, Microsoft Developer Studio Project, Microsoft Visual Studio
    Solution, MiniYAML, Ninja, Nix, Proguard, QMake, RPM Spec, Snakemake, Starlark, TOML, XML, XML
    Property List, YAML, pkg-config
""")
#: languages of data that programs are made from: grammars, interfaces, queries
_SOURCES = _names("""
    ABNF, ASN.1, Avro IDL, CIL, EBNF, Edje Data Collection, FlatBuffers, Graphviz (DOT), GraphQL,
    Kusto, Lark, OpenType Feature File, PlantUML, Prisma, Protocol Buffer, ROS Interface, SELinux
    Policy, SPARQL, SQL, Spline Font Database, WebAssembly Interface Type, Win32 Message File,
    YANG, Zmodel
""")
#: a page of a manual, unlike data-1.5 and log.old.1
_MANUAL = re.compile(r"[^.]*[^.\d]\.\d\w*")
_WRITTEN = frozenset(("programming", "markup", "prose"))
_BY_SUFFIX: Mapping[str, str] = {
    suffix: kind
    for kind, by_language in _OWN.items()
    for suffixes in by_language.values()
    for suffix in suffixes.split()
}


def listed(kind: str) -> frozenset[str]:
    """Return the suffixes of a kind that are listed here."""
    return frozenset(suffix for text in _OWN[kind].values() for suffix in text.split())


#: with a version: libLLVM.so.22.1-rust-1.95.0-stable; not libstdc++.so.6.0.30-gdb.py,
#: nor meson's liba.so.1.symbols
SHARED_OBJECT = re.compile(rb"\.so(\.\d[\w.+~-]*(?<!\.py)(?<!\.symbols))?$")
#: what holds other files
CONTAINERS = tuple(b".a .rlib .lib .jar .war .ear .aar .klib .whl .tar .zip".split())


def kind_of(name: str) -> str | None:
    """Return the kind that the last part of a path shows, None for data and for unknown names."""
    if name in _file_names():
        return CONFIG
    for end in _ends(name):
        kind = _BY_SUFFIX.get(end) or _BY_SUFFIX.get(end.lower()) or _of_languages(end.lower())
        if kind is not None and not (end[1:2].isdigit() and not _MANUAL.fullmatch(name)):
            return None if kind == DATA else kind
    return None


def _ends(name: str) -> Iterator[str]:
    """Yield the last two suffixes of a name together, then the last one."""
    last = name.rfind(".")
    before = name.rfind(".", 0, max(last, 0))
    if before > 0:
        yield name[before:]
    if last > 0:
        yield name[last:]


@cache
def _table() -> str:
    return LANGUAGES.read_text("utf-8")


@cache
def _file_names() -> frozenset[str]:
    """Return the names of files that configure; bare words such as `man` may be anything."""
    names = _table().rpartition("\t")[2].split()
    return frozenset(name for name in names if name != name.lower() or "." in name)


def languages(suffix: str) -> list[tuple[str, str]]:
    """Return (type, name) of each language of Linguist that has a suffix in lower case."""
    table, found = _table(), []
    at = table.find(f" {suffix} ")
    while at >= 0:
        kind, name, _ = table[table.rfind("\n", 0, at) + 1 : at + 1].split("\t")
        found.append((kind, name))
        at = table.find(f" {suffix} ", at + 1)
    return found


@lru_cache(maxsize=4096)
def _of_languages(suffix: str) -> str | None:
    """Return the kind of a suffix: .yy is of yacc and of JSON, therefore a source."""
    found = {_kind_of_language(*each) for each in languages(suffix)}
    return next((kind for kind in (SOURCE, CONFIG, DATA) if kind in found), None)


def _kind_of_language(kind: str, name: str) -> str:
    if name in _CONFIG:
        return CONFIG
    return SOURCE if kind in _WRITTEN or name in _SOURCES else DATA
