# SPDX-License-Identifier: Apache-2.0
"""GNU make and the Tiny C Compiler as programs of Windows, from Debian's sources by mingw-w64.

Both are what people use on Windows: make starts its commands with CreateProcess and cmd.exe, tcc
compiles, links and archives. tcc's own library is built by tcc, in the build that is traced.
Sources: make's build_w32.bat, tcc's win32/build-tcc.bat.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import sources
from windows.wine import GCC, need

COMPILED = re.compile(r"^call :Compile ([\w/-]+)", re.MULTILINE)
LIBRARIES = ("-lkernel32", "-luser32", "-ladvapi32")


def _compile(tree: Path, out: Path, *words: str | Path) -> Path:
    command: list[str | Path] = [need(GCC, "gcc-mingw-w64-x86-64-win32"), "-w", "-O0", "-static"]
    done = subprocess.run(
        [*command, "-o", out, *words], cwd=tree, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out


def build_make(out: Path, work: Path) -> Path:
    """Build GNU make as `out`."""
    tree = sources.fetch("make-dfsg")
    work.mkdir()
    for name in ("src/config.h.W32", "lib/glob.in.h", "lib/fnmatch.in.h"):
        shutil.copy(tree / name, work / re.sub(r"(\.in)?\.h(\.W32)?$", ".h", Path(name).name))
    units = COMPILED.findall((tree / "build_w32.bat").read_text())
    includes = ("-I", work, "-Isrc", "-Ilib", "-Isrc/w32/include")
    flags = ("-std=gnu99", "-DWINDOWS32", "-DHAVE_CONFIG_H", "-DWIN32_LEAN_AND_MEAN")
    names = [f"{unit}.c" for unit in units if not unit.endswith("compat/dirent")]  # only for cl
    return _compile(tree, out, *flags, *includes, *names, *LIBRARIES)


def build_tcc(folder: Path, work: Path) -> Path:
    """Put tcc into `folder` as it is installed, but for libtcc1.a; return the program."""
    tree = sources.fetch("tcc")
    work.mkdir()
    (work / "config.h").write_text('#define TCC_VERSION "0.9.27"\n')
    shutil.copytree(tree / "win32/include", folder / "include")
    (folder / "lib").mkdir()
    for header in [*tree.glob("include/*.h"), tree / "tcclib.h"]:
        shutil.copy(header, folder / "include")
    for names in tree.glob("win32/lib/*.def"):
        shutil.copy(names, folder / "lib")
    target = ("-DTCC_TARGET_PE", "-DTCC_TARGET_X86_64", "-DONE_SOURCE=1")
    return _compile(tree, folder / "tcc.exe", "-I", work, "-I.", *target, "tcc.c")


def put_runtime(folder: Path) -> Path:
    """Copy the sources of libtcc1.a into `folder`."""
    tree = sources.fetch("tcc")
    folder.mkdir()
    for source in [*tree.glob("win32/lib/*.[cS]"), tree / "lib/libtcc1.c"]:
        shutil.copy(source, folder)
    shutil.copy(tree / "lib/alloca86_64.S", folder)
    return folder
