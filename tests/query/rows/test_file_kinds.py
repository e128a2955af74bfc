# SPDX-License-Identifier: Apache-2.0
"""Kinds of files: what the trace shows first, names last."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import databases
import pytest
from builders import O_CREAT, O_TRUNC, O_WRONLY, TraceBuilder
from databases import capture_database, database_of
from libetrace.depend import configuration as config
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

from etrace.nfsdb.store import open_database
from etrace.postprocess.run import postprocess
from etrace.query.dependencies import walk
from etrace.query.rows.file_kinds import FileKind, FileKinds, by_name

NEW = O_WRONLY | O_CREAT | O_TRUNC


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/w/a.c", FileKind.SOURCE),
        ("/w/statinfo.c", FileKind.SOURCE),
        ("/w/config.h.in", FileKind.HEADER),
        ("/usr/include/c++/12/vector", FileKind.HEADER),
        ("/w/a.o", FileKind.OBJECT),
        ("/w/liba.so.1.2", FileKind.LIBRARY),
        ("/w/ld-linux-x86-64.so.2", FileKind.LIBRARY),
        ("/w/libLLVM.so.22.1-rust-1.95.0-stable", FileKind.LIBRARY),
        ("/w/libstdc++.so.6.0.30-gdb.py", FileKind.SOURCE),
        ("/w/liba.so.1.symbols", None),
        ("/w/Makefile.in", FileKind.CONFIG),
        ("/w/.config", FileKind.CONFIG),
        ("/w/x.dep", FileKind.CONFIG),
        ("/w/README", None),
    ],
)
def test_what_a_name_says(name: str, kind: FileKind | None) -> None:
    assert by_name(name.encode()) is kind


def test_a_file_of_dependencies_is_no_source_in_d() -> None:
    assert by_name(b"/w/a.d") is FileKind.SOURCE
    assert by_name(b"/w/a.d", is_made=True) is FileKind.CONFIG


SCRIPT = """\
echo 'int main(void) { return 0; }' > conftest.c; gcc conftest.c -o conftest; rm conftest*
gcc gen.c -o gen; ./gen > table.tmp; mv table.tmp table.h
gcc -c -MD a.c; ar rcs liba.a a.o
cat words > text 2> /dev/null; echo true > ./sub.sh; sh ./sub.sh
perl -MCarp -e 1
gcc -x c main.txt -x none liba.a -o prog
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Image]:
    folder = tmp_path_factory.mktemp("kinds")
    work = folder / "work"
    work.mkdir()
    (work / "gen.c").write_text('#include <stdio.h>\nint main(void) { puts("#define A 1"); }\n')
    (work / "a.c").write_text('#include "table.h"\nint a = A;\n')
    (work / "main.txt").write_text("extern int a; int main(void) { return a; }\n")
    (work / "words").write_text("some\n")
    image = capture_database(folder, ["/bin/sh", "-ec", SCRIPT], work)
    postprocess(image, config.load(folder), ("linked", "compilations"))
    return work, open_database(folder)


OWN = {
    "gen.c": FileKind.SOURCE,
    "main.txt": FileKind.SOURCE,  # it was compiled
    "a.c": FileKind.SOURCE,
    "table.h": FileKind.HEADER,
    "a.o": FileKind.OBJECT,
    "liba.a": FileKind.LIBRARY,
    "gen": FileKind.EXECUTABLE,  # it was made here, therefore it is not a tool
    "prog": FileKind.EXECUTABLE,
    "a.d": FileKind.CONFIG,
    "words": FileKind.DATA,
    "text": FileKind.DATA,
    "sub.sh": FileKind.SOURCE,  # never opened by this very name
    "conftest.c": FileKind.TEMPORARY,
    "conftest": FileKind.TEMPORARY,
    "table.tmp": FileKind.TEMPORARY,
}


@pytest.mark.parametrize("name", OWN)
def test_the_files_of_a_build(built: tuple[Path, Image], name: str) -> None:
    work, image = built
    assert FileKinds(image).of(image.find_path(os.fsencode(work / name))) is OWN[name]


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (b"/libc.so.6", FileKind.LIBRARY),  # ld loads it to run, and links it
        (b"/libbfd-*.so", FileKind.TOOL),  # ld loads it to run
        (b"/liblto_plugin.so", FileKind.TOOL),
        (b"/ld.so.cache", FileKind.TOOL),
        (b"/cc1", FileKind.TOOL),
        (b"/Carp.pm", FileKind.TOOL),  # perl-base has modules in a directory of its own
        (b"/Scrt1.o", FileKind.OBJECT),
        (b"/stdio.h", FileKind.HEADER),
        (b"/dev/null", FileKind.DEVICE),
    ],
)
def test_the_files_of_the_system(built: tuple[Path, Image], end: bytes, kind: FileKind) -> None:
    _, image = built
    head, star, tail = end.partition(b"*")
    found = [
        FileKinds(image).of(row)
        for row in range(image["paths"].n_rows)
        if (path := image.path_string(row)).endswith(tail if star else end) and (head in path)
    ]
    assert found == [kind] * len(found)
    assert found


def test_files_of_a_tmpfs_below_run_are_no_tools(tmp_path: Path) -> None:
    t = TraceBuilder("/w").exec(1, "/bin/gen").use(1, "/w/a")
    names = {"/run/user/7/a.h": "header", "/run/media/u/disk/a.c": "source", "/run/motd": "tool"}
    for name in names:
        t.use(1, name)
    names["/run/made/a.h"] = "header"
    image = databases.database_of(tmp_path, t.use(1, "/run/made/a.h", flags=NEW).exit(1).trace())
    kinds = FileKinds(image)
    assert {name: kinds.of(image.find_path(name.encode())) for name in names} == names


def test_a_build_whose_tree_is_gone_keeps_its_kinds(tmp_path: Path) -> None:
    image = open_database(databases.write_processed_lua(tmp_path))
    kinds, found = FileKinds(image), walk(Dependencies(image), [b"src/lua"], Rules())
    assert Counter(kinds.of(path).value for path in found.paths) == {
        "source": 33,
        "header": 148,
        "object": 38,
        "library": 12,  # liblua.a, libgcc, libc, libm, libdl, libmvec, ld-linux: nothing ld runs on
        "tool": 27,
        "temporary": 35,
        "directory": 1,
    }


def upid(number: int) -> int:
    return number << 22 | number


MAIN, CHILD, THREAD = map(upid, (1, 2, 3))
WRITE = 0o1101
Run = tuple[str, list[str], list[str]]  # a program, what it reads, what it writes


def kind_in(folder: Path, path: str, *runs: Run, cwd: str = "/w/elsewhere") -> FileKind:
    """Return the kind of a file after these programs ran; the build began in /w/elsewhere."""
    trace = TraceBuilder(cwd="/w/elsewhere").exec(MAIN, "/usr/bin/make", ["make"])
    for number, (program, reads, writes) in enumerate(runs, 2):
        trace.fork(MAIN, upid(number)).exec(upid(number), program, [program], cwd=cwd)
        for each in reads:
            trace.use(upid(number), each)
        for each in writes:
            trace.use(upid(number), each, flags=WRITE)
        trace.exit(upid(number))
    image = database_of(folder, trace.exit(MAIN).trace())
    return FileKinds(image).of(image.find_path(path.encode()))


@pytest.mark.parametrize(
    ("path", "program", "kind"),
    [
        ("/w/t1enc.def", "/usr/bin/pdflatex", FileKind.SOURCE),
        ("/w/t1enc.def", "/usr/bin/lualatex", FileKind.SOURCE),
        ("/w/insns.def", "/usr/lib/gcc/cc1", FileKind.HEADER),
        ("/w/exports.def", "/usr/bin/x86_64-w64-mingw32-ld", FileKind.CONFIG),
        ("/w/article.cfg", "/usr/bin/xelatex", FileKind.SOURCE),
        ("/w/setup.cfg", "/usr/bin/python3", FileKind.CONFIG),
        ("/w/size10.clo", "/usr/bin/pdftex", FileKind.SOURCE),
        ("/w/geometry.mod", "/usr/lib/gcc/f951", FileKind.OBJECT),
        ("/w/geometry.mod", "/usr/bin/flang-new-18", FileKind.OBJECT),
        ("/w/geometry.mod", "/usr/bin/cmake", FileKind.OBJECT),  # copies it
        ("/w/e1000.mod", "/usr/bin/mawk", FileKind.CONFIG),  # Kbuild's
        ("/w/e1000.mod", "/w/scripts/mod/modpost", FileKind.CONFIG),
        ("/w/go.mod", "/usr/bin/go", FileKind.CONFIG),
        ("/w/ice-9.go", "/usr/bin/guild", FileKind.OBJECT),
        ("/w/main.go", "/usr/bin/go", FileKind.SOURCE),
        ("/w/rpc.x", "/usr/bin/rpcgen", FileKind.SOURCE),
        ("/w/link.x", "/usr/bin/ld", FileKind.CONFIG),
    ],
)
def test_who_opened_a_file_decides_where_its_name_does_not(
    tmp_path: Path, path: str, program: str, kind: FileKind
) -> None:
    assert kind_in(tmp_path, path, (program, [path], [])) is kind


TREE = "/usr/share/texlive/texmf-dist"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (f"{TREE}/tex/latex/base/article.cls", FileKind.SOURCE),
        (f"{TREE}/tex/latex/base/size10.clo", FileKind.SOURCE),
        (f"{TREE}/tex/latex/graphics-def/pdftex.def", FileKind.SOURCE),
        ("/home/u/.texmf/tex/own.sty", FileKind.SOURCE),
        ("/home/u/texmf/tex/own.fd", FileKind.SOURCE),
        ("/usr/local/texlive/2025/texmf-dist/bibtex/bst/base/plain.bst", FileKind.SOURCE),
        (f"{TREE}/fonts/type1/public/amsfonts/cm/cmr10.pfb", FileKind.DATA),
        (f"{TREE}/fonts/tfm/public/cm/cmr10.tfm", FileKind.DATA),
        ("/var/lib/texmf/fonts/map/pdftex/updmap/pdftex.map", FileKind.CONFIG),
        ("/var/lib/texmf/web2c/pdftex/pdflatex.fmt", FileKind.TOOL),
        ("/usr/share/texmf/web2c/texmf.cnf", FileKind.TOOL),
        (f"{TREE}/ls-R", FileKind.TOOL),
        (f"{TREE}/scripts/latexmk/latexmk.pl", FileKind.TOOL),
    ],
)
def test_a_document_is_made_from_classes_and_fonts(
    tmp_path: Path, path: str, kind: FileKind
) -> None:
    assert kind_in(tmp_path, path, ("/usr/bin/pdflatex", [path], ["/w/a.pdf"])) is kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/usr/lib/x86_64-linux-gnu/perl/5.36/CORE/perl.h", FileKind.HEADER),
        ("/usr/lib/python3/dist-packages/numpy/core/include/numpy/arrayobject.h", FileKind.HEADER),
        ("/usr/lib/python3/dist-packages/Cython/Includes/libc/math.pxd", FileKind.HEADER),
        ("/usr/lib/erlang/lib/eunit/include/eunit.hrl", FileKind.HEADER),
        ("/usr/lib/ocaml/stdlib.cmi", FileKind.OBJECT),
        ("/usr/lib/ghc/lib/base/Prelude.dyn_hi", FileKind.OBJECT),
        ("/usr/lib/erlang/lib/stdlib/ebin/lists.beam", FileKind.TOOL),
        ("/usr/share/emacs/29.1/lisp/subr.elc", FileKind.TOOL),
        ("/usr/lib/python3.11/json/__init__.py", FileKind.TOOL),
        ("/usr/share/perl/5.36/strict.pm", FileKind.TOOL),
        ("/usr/lib/R/library/stats/R/stats.rdb", FileKind.TOOL),
        ("/usr/share/locale/de/LC_MESSAGES/make.mo", FileKind.TOOL),
    ],
)
def test_of_an_interpreters_directories_only_inputs_of_compilers_are_shown(
    tmp_path: Path, path: str, kind: FileKind
) -> None:
    assert kind_in(tmp_path, path, ("/usr/bin/any", [path], [])) is kind


@pytest.mark.parametrize(
    ("path", "runs", "cwd", "kind"),
    [
        # make -C /opt/x
        ("/opt/x/in.dat", [("/bin/cat", ["/opt/x/Makefile"], [])], "/opt/x", FileKind.DATA),
        ("/opt/x/in.dat", [("/bin/cat", [], ["/opt/x/out"])], "/opt/x", FileKind.DATA),
        # cmake -S /opt/x -B /tmp/b; a command that stays elsewhere
        ("/opt/x/in.dat", [("/bin/cat", ["/opt/x/CMakeLists.txt"], [])], "/w", FileKind.DATA),
        ("/opt/x/src/in.dat", [("/bin/cat", [], ["/opt/x/build/out"])], "/w", FileKind.DATA),
        ("/opt/x/lib/ruby/in.rb", [("/bin/cat", [], ["/opt/x/out"])], "/opt/x", FileKind.SOURCE),
        ("/usr/local/x/in.dat", [("/bin/cat", ["/usr/local/x/Makefile"], [])], "/usr/local/x",
         FileKind.DATA),
        ("/srv/x/lib/ruby/in.rb", [("/bin/cat", ["/srv/x/Makefile"], [])], "/srv/x",
         FileKind.SOURCE),
        # installed software stays a tool: a compiler with a cache, and where nothing was made
        ("/opt/sdk/in.dat", [("/opt/sdk/bin/cc", [], ["/opt/sdk/cache/a"])], "/w", FileKind.TOOL),
        ("/opt/sdk/in.dat", [("/bin/cat", [], ["/opt/x/out"])], "/opt/x", FileKind.TOOL),
        ("/opt/sdk/in.dat", [("/bin/cat", [], ["/w/out"])], "/w", FileKind.TOOL),
        ("/usr/lib/x.dat", [("/bin/ln", [], ["/usr/lib/liba.so"])], "/usr/lib", FileKind.TOOL),
    ],
)  # fmt: skip
def test_what_is_built_is_the_projects_wherever_the_build_began(
    tmp_path: Path, path: str, runs: list[Run], cwd: str, kind: FileKind
) -> None:
    runs = [*runs, ("/bin/cat", [path], [])]
    assert kind_in(tmp_path, path, *runs, cwd=cwd) is kind


def test_a_deep_path_of_installed_software_has_a_kind(tmp_path: Path) -> None:
    path = "/opt/x" + "/a" * 1500 + "/in.dat"
    runs: list[Run] = [("/bin/cat", [path], ["/opt/x/out"])]
    assert kind_in(tmp_path, path, *runs) is FileKind.DATA


MODULES = "/w/elsewhere/node_modules"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("webpack/lib/index.js", FileKind.TOOL),  # require()
        ("webpack/package.json", FileKind.TOOL),
        ("rollup/dist/es/rollup.js", FileKind.TOOL),  # an import of what the process began with
        ("react/index.js", FileKind.SOURCE),  # read by a bundler, in another thread
        ("bootstrap/scss/bootstrap.scss", FileKind.SOURCE),
        ("react/index.d.ts", FileKind.HEADER),
        ("preact/index.mjs", FileKind.SOURCE),  # another program read it
        ("both/index.js", FileKind.SOURCE),  # run by the bundler and put into the product
    ],
)
def test_modules_that_node_runs_are_tools_and_bundled_ones_sources(
    tmp_path: Path, path: str, kind: FileKind
) -> None:
    trace = TraceBuilder(cwd="/w/elsewhere")
    trace.exec(MAIN, "/usr/bin/node", ["node", f"{MODULES}/.bin/rollup"]).thread(MAIN, THREAD)
    for each in ("webpack/lib/index.js", "webpack/package.json", "both/index.js"):
        trace.use(MAIN, f"{MODULES}/{each}")
    for each in (
        "react/index.js",
        "rollup/dist/es/rollup.js",
        "both/index.js",
        "both/package.json",
        "bootstrap/scss/bootstrap.scss",
        "react/index.d.ts",
    ):
        trace.use(THREAD, f"{MODULES}/{each}")  # fmt: skip
    trace.fork(MAIN, CHILD).exec(CHILD, "/w/esbuild", ["esbuild"])
    trace.use(CHILD, f"{MODULES}/preact/index.mjs").exit(CHILD).exit(THREAD).exit(MAIN)
    image = database_of(tmp_path, trace.trace())
    row = image.find_path(f"{MODULES}/{path}".encode())
    assert FileKinds(image).of(row) is kind


def test_modules_of_an_environment_are_tools_unless_something_copies_them(tmp_path: Path) -> None:
    site = "/w/elsewhere/.venv/lib/python3.11/site-packages"
    read, copied = f"{site}/jinja2/parser.py", f"{site}/own/data.py"
    runs: list[Run] = [("/usr/bin/python3.11", [read, copied], []), ("/bin/cp", [copied], [])]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert kind_in(tmp_path / "a", read, *runs) is FileKind.TOOL
    assert kind_in(tmp_path / "b", copied, *runs) is FileKind.SOURCE
