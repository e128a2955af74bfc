# SPDX-License-Identifier: Apache-2.0
"""Real packages built with and without capture in the same folder: the same files, byte for byte.

The trace of each build is complete as well: it holds the making of every file that the build left.
Sources: Debian's archive (tests/sources.py) and, for the wheel, the Python package index by pip.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import sources
import trace_lines
from backends import BACKENDS, Backend, capture, need_tool

DATA = Path(__file__).resolve().parent.parent / "data"
WRITES = 0o3  # O_WRONLY|O_RDWR
# Files with the time, process ids or random names in them, also without capture.
RUN_DETAILS = re.compile(r"(.*/)?([^/]*\.log|\.ninja_(log|deps)|CMakeConfigureLog\.yaml)")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name),
]


def environment(path: Path) -> dict[str, str]:
    """Return what a build may see: no locale, no user's settings, a fixed date."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "LC_ALL": "C",
        "SOURCE_DATE_EPOCH": "1700000000",
        "TOP": str(path),
    }


@dataclass(frozen=True, slots=True)
class Build:
    """A build: how its folder is filled, and the commands that run in it."""

    fill: Callable[[Path], object]
    script: str
    results: tuple[str, ...]
    timeout: float = 300


def files(folder: Path) -> dict[str, str]:
    """Return every file and link below `folder` with a checksum or its target."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def made(trace: trace_lines.Trace) -> set[bytes]:
    """Return every path that the trace says was written, linked or renamed into being."""
    by_upid: dict[int, list[trace_lines.Line]] = {}
    for line in trace.lines:
        by_upid.setdefault(line.upid, []).append(line)
    paths = set()
    for lines in by_upid.values():
        for event in trace_lines.events(lines):
            if event.tag == "Open" and event.args["flags"] & WRITES:
                paths.add(event.strings["FN"])
            for tag, data in (("RenameTo", "RT"), ("LinkTo", "LT"), ("Symlink", "SL")):
                if event.tag == tag:
                    paths.add(event.strings[data])
    return paths


def check(backend: Backend, build: Build, tmp_path: Path) -> trace_lines.Trace:
    """Build without and with capture in one folder; compare, and return the trace."""
    folder = tmp_path.resolve() / "build"
    command = ["sh", "-e", "-c", build.script]
    build.fill(folder)
    before = files(folder)
    native = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )
    assert native.returncode == 0, native.stdout[-2000:] + native.stderr[-2000:]
    wanted = files(folder)
    for name in build.results:
        assert name in wanted, f"the build made no {name}"

    shutil.rmtree(folder)
    build.fill(folder)
    start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    run = capture(backend, command, folder, env=environment(folder), timeout=build.timeout)
    end_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert run.status == 0, run.stderr[-4000:].decode(errors="replace")
    got = files(folder)
    assert got.keys() == wanted.keys()
    assert [n for n in got if got[n] != wanted[n] and not RUN_DETAILS.fullmatch(n)] == []

    trace = trace_lines.parse(run.trace.read_bytes())
    trace_lines.check_stamps(trace, start_ns, end_ns)
    new = [name for name in got if got[name] != before.get(name)]
    paths = made(trace)
    assert [name for name in new if os.fsencode(folder / name) not in paths] == []
    forks = sum(line.data.startswith(b"SchedFork|") for line in trace.lines)
    assert sum(line.data.startswith(b"Exit|") for line in trace.lines) == forks + 1
    return trace


def debian(package: str) -> Callable[[Path], object]:
    """Return what fills a folder with the upstream source of a Debian package."""

    def fill(folder: Path) -> None:
        unpacked = sources.fetch(package, folder.with_name("unpacked"))
        unpacked.rename(folder)

    return fill


def test_lua(backend: Backend, tmp_path: Path) -> None:
    need_tool("make", "make")
    need_tool("gcc", "gcc")
    script = "make -j2 linux; make install INSTALL_TOP=$TOP/installed"
    results = ("src/lua", "src/liblua.a", "installed/bin/luac", "installed/include/lua.h")
    check(backend, Build(debian("lua5.4"), script, results), tmp_path)


def test_zlib_configure_make_install(backend: Backend, tmp_path: Path) -> None:
    need_tool("make", "make")
    need_tool("gcc", "gcc")
    script = "./configure --prefix=$TOP/installed; make -j2; make check; make install"
    results = ("libz.a", "installed/lib/libz.so", "installed/share/man/man3/zlib.3", "example")
    check(backend, Build(debian("zlib"), script, results), tmp_path)


@pytest.mark.long
def test_bash_configure_make(backend: Backend, tmp_path: Path) -> None:
    need_tool("make", "make")
    need_tool("gcc", "gcc")
    flags = "-O0 -Wno-error=implicit-function-declaration"  # an error since gcc 14
    script = f"./configure CFLAGS='{flags}' --disable-nls; make -j2"
    trace = check(
        backend, Build(debian("bash"), script, ("bash", "builtins/libbuiltins.a")), tmp_path
    )
    assert sum(line.data.startswith(b"New_proc|") for line in trace.lines) > 3000


def test_a_cmake_ninja_project_in_cplusplus(backend: Backend, tmp_path: Path) -> None:
    need_tool("cmake", "cmake")
    need_tool("ninja", "ninja-build")
    need_tool("g++", "g++")
    script = (
        "cmake -G Ninja -B out -DCMAKE_BUILD_TYPE=Debug -DJSONCPP_WITH_TESTS=OFF "
        "-DCMAKE_INSTALL_PREFIX=$TOP/installed -DCMAKE_INSTALL_LIBDIR=lib; "
        "ninja -C out -j2 install"
    )
    results = ("out/build.ninja", "installed/lib/libjsoncpp.a", "installed/lib/libjsoncpp.so")
    check(backend, Build(debian("libjsoncpp"), script, results), tmp_path)


@pytest.mark.long
def test_a_python_wheel_with_a_c_extension(backend: Backend, tmp_path: Path) -> None:
    need_tool("gcc", "gcc")
    venv = tmp_path.resolve() / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip = [str(venv / "bin/python"), "-m", "pip", "--quiet"]
    subprocess.run([*pip, "install", "--upgrade", "setuptools", "wheel"], check=True)
    download = ["download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
    subprocess.run([*pip, *download, "-d", str(tmp_path), "markupsafe==3.0.3"], check=True)
    (sdist,) = tmp_path.glob("markupsafe-*.tar.gz")

    def fill(folder: Path) -> None:
        with tarfile.open(sdist) as tar:
            tar.extractall(folder.with_name("unpacked"))
        (folder.with_name("unpacked") / sdist.name.removesuffix(".tar.gz")).rename(folder)

    script = (
        f"{venv}/bin/python -m pip wheel --no-build-isolation --no-deps --no-index -w out .; "
        f"{venv}/bin/python -m zipfile -e out/*.whl unpacked; ls unpacked/markupsafe/*.so > made"
    )
    check(backend, Build(fill, script, ("made",)), tmp_path)


def test_rustc(backend: Backend, tmp_path: Path) -> None:
    need_tool("rustc", "rustc")

    def fill(folder: Path) -> None:
        folder.mkdir()
        shutil.copy(DATA / "hello.rs", folder)

    script = "rustc -O hello.rs; ./hello > said; grep -q 'hello from 4 threads' said"
    check(backend, Build(fill, script, ("hello", "said")), tmp_path)
