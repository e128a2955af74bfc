# SPDX-License-Identifier: Apache-2.0
"""Real packages, each built once for a whole run of the tests: by ptrace, and without capture.

The first test that asks for a package builds it, other tests and workers wait and read. A package
is built in FOLDER/build; its database, post-processed, is beside it, in FOLDER. Nobody writes
there afterwards. The depfiles (`-MD`) are what the compilers say that they read.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import sources
from backends import PTRACE, Backend, Captured, capture, need_tool
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image
from once import made_once

from etrace.nfsdb.store import open_database
from etrace.postprocess.module_kinds import Kind
from etrace.query.dependencies import deps

BIN = Path(sys.executable).parent
DATA = Path(__file__).parent / "data"
WRITES = 0b11
TIMEOUT = 500
TOOLS = (
    ("make", "make"), ("gcc", "gcc"), ("g++", "g++"), ("cmake", "cmake"), ("ninja", "ninja-build"),
    ("ar", "binutils"), ("readelf", "binutils"), ("tclsh", "tcl"), ("rustc", "rustc"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Package:
    """What is built, and how.

    `prepare` runs before `script`. It is captured, into a trace of its own, if the build is
    compared with one without capture.
    `generated` says what an object may depend on though no depfile names it, since generators
    read it: expressions for whole paths, in which <tree> is the build tree, each with a reason.
    """

    name: str
    fill: Callable[[Path], object]  # makes the tree
    script: str
    prepare: str = ""
    results: tuple[str, ...] = ()  # files that are made, beside others
    is_compared: bool = False
    n_objects: int = 0  # that have a depfile, at least
    modules: tuple[str, ...] = ()  # some of them, as globs: each finds one besides links
    generated: tuple[tuple[str, str], ...] = ()


def debian(package: str) -> Callable[[Path], object]:
    """Return what fills a folder with the upstream source of a Debian package."""
    return lambda tree: sources.fetch(package, tree.with_name("unpacked")).rename(tree)


# ---- the packages ----

#: what a `configure` reads and leaves, when a header that it made is a dependency
CONFIGURE = "made by configure, with all that it tried"
#: headers elsewhere than in /usr/include: the compiler's, and Linux's, to which Debian 13 links
OTHER_HEADERS = "/usr/lib/(gcc/.*/include|linux/uapi)/.*"
MANIFEST = "mksourceid hashes every file of sqlite's manifest into sqlite3.c"
#: for bash's termcap; an error since gcc 14
IMPLICIT = "-Wno-error=implicit-function-declaration"
CMAKE = "-B out -DCMAKE_BUILD_TYPE=Debug -DJSONCPP_WITH_TESTS=OFF"

LUA = Package(
    name="lua",
    fill=debian("lua5.4"),
    script="make -j2 linux MYCFLAGS='-MD -g'; make install INSTALL_TOP=$TOP/installed",
    results=("installed/bin/luac", "installed/include/lua.h"),
    is_compared=True,
    n_objects=34,
    modules=("src/liblua.a", "src/lua", "src/luac"),
)
ZLIB = Package(
    name="zlib",
    fill=debian("zlib"),
    script="CFLAGS='-O0 -MD -g' ./configure --prefix=$TOP/installed;"
    " rm ztest*.d; make -j2; make check; make install",  # its name has a process id
    results=("installed/lib/libz.so", "installed/share/man/man3/zlib.3"),
    is_compared=True,
    n_objects=34,
    modules=("libz.a", "libz.so.1.*", "example", "minigzip", "examplesh", "minigzipsh"),
    generated=(
        (r"<tree>|<tree>/(zconf\.h(\.in)?|zconf\.temp\.h)", CONFIGURE),
        (r"<tree>/(configure(\.log)?|Makefile(\.in)?|zlib\.(map|h)|ztest\d+.*)", CONFIGURE),
        (rf"/usr/include/.*|{OTHER_HEADERS}", "of ztest.c, which configure compiles"),
        (r"<tree>/objs/\w+\.o|<tree>/\w+\.lo", "the object under its other name"),
    ),
)
JSONCPP = Package(
    name="jsoncpp",
    fill=debian("libjsoncpp"),
    script=f"cmake -G 'Unix Makefiles' {CMAKE} -DCMAKE_EXPORT_COMPILE_COMMANDS=ON; make -C out -j2",
    n_objects=9,
    modules=("out/lib/libjsoncpp.a", "out/lib/libjsoncpp.so.*.*.*"),
)
JSONCPP_NINJA = Package(  # ninja removes the depfiles
    name="jsoncpp-ninja",
    fill=debian("libjsoncpp"),
    script=f"cmake -G Ninja {CMAKE} -DCMAKE_INSTALL_PREFIX=$TOP/installed"
    " -DCMAKE_INSTALL_LIBDIR=lib; ninja -C out -j2 install",
    results=("out/build.ninja", "installed/lib/libjsoncpp.a", "installed/lib/libjsoncpp.so"),
    is_compared=True,
    modules=("out/lib/libjsoncpp.a", "out/lib/libjsoncpp.so.*.*.*"),
)
SQLITE = Package(
    name="sqlite",
    fill=debian("sqlite3"),
    prepare="./configure CFLAGS='-O0 -MD -g' --disable-tcl --disable-shared",
    script="make sqlite3 libsqlite3.la",
    n_objects=4,
    modules=("sqlite3", "lemon", "mkkeywordhash", ".libs/libsqlite3.a"),
    generated=(
        (r"<tree>/([^/]*|(src|ext|tsrc|tool|test|mptest|vsixtest)/.*)", MANIFEST),
        (r"<tree>/(\.fossil-settings|art|autoconf|contrib|doc)/.*", MANIFEST),
        (r"/tmp/tcl_\w+|/usr/share/tcltk/.*|/etc/(nsswitch\.conf|passwd)", "tclsh: sqlite3.c"),
        (rf"/usr/include/.*|{OTHER_HEADERS}", "shell.c: sqlite3.c has its depfile"),
    ),
)
BASH = Package(
    name="bash",
    fill=debian("bash"),
    prepare=f"./configure --disable-nls CFLAGS='-O0 -MD -g {IMPLICIT}'",
    script="make -j2",
    is_compared=True,
    n_objects=150,
    modules=("bash", "builtins/libbuiltins.a", "lib/readline/libreadline.a", "builtins/mkbuiltins"),
    generated=(
        (r"<tree>/builtins/(\w+\.def|(builtext|builtins|mk)-\d+(\.\w)?)", "by mkbuiltins"),
        (r"<tree>/builtins/psize\.(aux|c|sh)|/tmp/pipsize\.\w+", "pipesize.h"),
        (r"<tree>/(support/mkversion\.sh|(newversion|patchlevel)\.h)", "version.h"),
        (r"<tree>/pathnames\.(h\.in|tmp)", "pathnames.h"),
        (r"<tree>/lsignames\.h", "signames.h"),
    ),
)


def _fill_with_rust(tree: Path) -> None:
    tree.mkdir()
    shutil.copy(DATA / "hello.rs", tree)


RUST = Package(
    name="rust",
    fill=_fill_with_rust,
    script="rustc -O hello.rs; ./hello > said; grep -q 'hello from 4 threads' said",
    results=("hello", "said"),
    is_compared=True,
)


def _fill_with_markupsafe(tree: Path) -> None:
    """Unpack a Python package with a C extension, and make what builds it, beside the tree."""
    folder = tree.parent
    if not (folder / "venv").exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        pip: list[str | Path] = [folder / "venv/bin/python", "-m", "pip", "--quiet"]
        subprocess.run([*pip, "install", "--upgrade", "setuptools", "wheel"], check=True)
        words = ["download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
        subprocess.run([*pip, *words, "-d", folder, "markupsafe==3.0.3"], check=True)
    (sdist,) = folder.glob("markupsafe-*.tar.gz")
    with tarfile.open(sdist) as tar:
        tar.extractall(folder / "unpacked")
    (folder / "unpacked" / sdist.name.removesuffix(".tar.gz")).rename(tree)


WHEEL = Package(
    name="wheel",
    fill=_fill_with_markupsafe,
    script="PYTHON=../venv/bin/python;"
    " $PYTHON -m pip wheel --no-build-isolation --no-deps --no-index -w out .;"
    " $PYTHON -m zipfile -e out/*.whl unpacked; ls unpacked/markupsafe/*.so > made",
    results=("made",),
    is_compared=True,
)

#: packages that only `make test-long` builds -> why
LONG = {
    BASH.name: "150 objects; its generators are like those of sqlite",
    WHEEL.name: "pip's own build, of one object",
    SQLITE.name: "one file of 200,000 lines; its generators are those of the trace only",
    JSONCPP_NINJA.name: "the sources of jsoncpp, by ninja; check and export trace small ones",
}


def chosen(*packages: Package) -> list[Any]:
    """Return packages as parameters of a test."""
    return [
        pytest.param(p, id=p.name, marks=[pytest.mark.long(LONG[p.name])] if p.name in LONG else ())
        for p in packages
    ]


# ---- building ----


def environment(tree: Path) -> dict[str, str]:
    """Return what a build may see: no locale, no user's settings, a fixed date, no ccache."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "LC_ALL": "C",
        "SOURCE_DATE_EPOCH": "1700000000",
        "PYTHONHASHSEED": "0",
        "CCACHE_DISABLE": "1",
        "TOP": str(tree),
    }


def run(command: list[str | Path], cwd: Path) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment(cwd),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    said = (done.stdout + done.stderr)[-3000:].decode(errors="replace")
    assert done.returncode == 0, f"{command}: {said}"


def output_of(*command: str | Path) -> str:
    """Return what a tool prints in the C locale."""
    return subprocess.run(
        [str(word) for word in command],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
        text=True,
        errors="surrogateescape",
    ).stdout


def run_captured(backend: Backend, script: str, tree: Path, trace: Path) -> Captured:
    """Run a shell's script in a tree under capture; it must succeed."""
    command, env = ["sh", "-e", "-c", script], environment(tree)
    done = capture(command, tree, env=env, timeout=TIMEOUT, trace=trace, backend=backend)
    assert done.status == 0, done.stderr[-4000:].decode(errors="replace")
    return done


def states(tree: Path) -> dict[str, list[Any]]:
    """Return checksum or target, mode and mtime in ns of everything below `tree`.

    A directory has None instead of a checksum.
    """
    found = {}
    for path in sorted(tree.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            content: str | None = f"-> {path.readlink()}"
        else:
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        found[str(path.relative_to(tree))] = [content, status.st_mode, status.st_mtime_ns]
    return found


def _build(package: Package, folder: Path) -> None:
    """Build a package without capture where that is compared, then with it; post-process."""
    for tool, name in TOOLS:
        need_tool(tool, name)
    tree, record = folder / "build", {}
    shell: list[str | Path] = ["sh", "-e", "-c"]
    package.fill(tree)
    record["source"] = states(tree)
    if package.is_compared:
        run([*shell, f"{package.prepare}\n{package.script}"], tree)
        record["native"] = states(tree)
        shutil.rmtree(tree)
        package.fill(tree)
    begin_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    if package.prepare and package.is_compared:
        run_captured(PTRACE, package.prepare, tree, folder / "prepare.nfsdb")
    elif package.prepare:
        run([*shell, package.prepare], tree)
    run_captured(PTRACE, package.script, tree, folder / ".nfsdb")
    span_ns = [begin_ns, time.clock_gettime_ns(time.CLOCK_MONOTONIC)]
    run([BIN / "etrace_parser", folder / ".nfsdb", folder / ".nfsdb.json"], folder)
    record["traced"] = states(tree)
    run([BIN / "cas", "pp", "--dbdir", folder], folder)
    record["processed"] = states(tree)
    (folder / "record.json").write_text(json.dumps({**record, "span_ns": span_ns}))


def built_once(package: Package, factory: pytest.TempPathFactory) -> Built:
    """Return a package that the first caller of this run of the tests builds."""
    folder = made_once(factory, package.name, lambda folder: _build(package, folder))
    return Built(package, folder)


class Built:
    """A package that was built: its tree, its database, and the states of its tree."""

    def __init__(self, package: Package, folder: Path) -> None:
        self.package, self.folder, self.tree = package, folder, folder / "build"
        record = json.loads((folder / "record.json").read_text())
        self.states: dict[str, dict[str, list[Any]]] = record
        self.span_ns: tuple[int, int] = tuple(record.pop("span_ns"))

    def contents(self, moment: str) -> dict[str, str]:
        """Return the checksums of files and targets of links at a moment."""
        found = self.states[moment].items()
        return {name: content for name, (content, *_) in found if content is not None}

    def traces(self) -> list[bytes]:
        """Return the trace of each part that was captured, in their order."""
        parts = (self.folder / name for name in ("prepare.nfsdb", ".nfsdb"))
        return [part.read_bytes() for part in parts if part.exists()]

    @cached_property
    def image(self) -> Image:
        """The database."""
        return open_database(self.folder)

    @cached_property
    def _dependencies(self) -> Dependencies:
        return Dependencies(self.image)

    def deps(self, path: Path, *, is_direct: bool = False) -> set[str]:
        """Return what `cas deps` finds for one file."""
        rules = Rules(is_direct=is_direct)
        return {os.fsdecode(name) for name in deps(self._dependencies, [bytes(path)], rules)}

    def is_written(self, path: Path) -> bool:
        """Return whether the traced part of the build wrote a file."""
        row = self.image.find_path(bytes(path))
        return row >= 0 and any(
            self.image["opens"]["mode"][self.image["path_opens"]["open"][at]] & WRITES
            for at in self.image["paths"].span("opens.start", row)
        )

    def writer_cwd(self, path: Path) -> Path:
        """Return the working directory of what wrote a file: depfiles are relative to it."""
        image = self.image
        row = image.find_path(bytes(path))
        assert row >= 0, f"{path}: not in the database"
        opens = image["opens"]
        for at in image["paths"].span("opens.start", row):
            use = image["path_opens"]["open"][at]
            if opens["mode"][use] & WRITES:
                cwd = image["executions"]["cwd"][opens["execution"][use]]
                return Path(os.fsdecode(image.string(cwd)))
        raise AssertionError(f"{path}: the database knows nobody who wrote it")

    @cached_property
    def depfiles(self) -> list[Depfile]:
        """All depfiles of the tree."""
        found = [
            Depfile(path, self.writer_cwd(path), target, names)
            for path in sorted(self.tree.rglob("*.d"))
            if path.is_file() and self.is_written(path)
            for target, names in rules_of(path.read_text())
        ]
        assert len(found) >= self.package.n_objects
        return found

    @cached_property
    def programs(self) -> set[str]:
        """Every program that was run."""
        binaries = {row for row in self.image["executions"]["binary"] if row >= 0}
        return {os.fsdecode(self.image.path_string(row)) for row in binaries}

    @cached_property
    def named_modules(self) -> list[Path]:
        """The files that the package names as modules."""
        found = []
        for name in self.package.modules:
            (path,) = (path for path in self.tree.glob(name) if not path.is_symlink())
            found.append(path)
        return found

    @cached_property
    def modules(self) -> dict[Path, Kind]:
        """The linked modules that `cas pp` found, with their kinds."""
        linked = self.image["linked"]
        paths = (Path(os.fsdecode(self.image.path_string(row))) for row in linked["path"])
        return dict(zip(paths, map(Kind, linked["kind"]), strict=True))


@dataclass(frozen=True, slots=True)
class Depfile:
    """One rule of a depfile; names as written there."""

    path: Path
    cwd: Path
    target: str
    names: tuple[str, ...]

    @property
    def object(self) -> Path:
        """The file that was made: beside X.o.d it is X.o, whatever CMake calls it in there."""
        if self.path.name.endswith(".o.d"):
            return self.path.with_suffix("")
        return (self.cwd / self.target).resolve()

    @property
    def source(self) -> Path:
        """The translation unit."""
        return (self.cwd / self.names[0]).resolve()

    @property
    def files(self) -> set[str]:
        """Everything that was read, resolved."""
        return {str((self.cwd / name).resolve()) for name in self.names}


def rules_of(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the rules of a depfile that have prerequisites: (target, prerequisites)."""
    for line in text.replace("\\\n", " ").splitlines():
        target, colon, rest = line.partition(": ")
        if colon and rest.strip():
            names = rest.replace("\\ ", "\0").split()
            yield target.strip(), tuple(name.replace("\0", " ") for name in names)
