# SPDX-License-Identifier: Apache-2.0
"""Programs of Windows under Debian's Wine, without a screen: a prefix, the tracer, its outputs.

Wine's files are the machine's: drive Z: is `/`. A prefix takes three seconds and 700 MB, so all
tests share one, which is removed at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOP = Path(__file__).parents[2]
PROGRAMS = TOP / "tests/windows/programs"
WINE = "/usr/lib/wine/wine64"
SERVER = "/usr/lib/wine/wineserver64"
GCC = "x86_64-w64-mingw32-gcc"
WARNINGS = ("-Wall", "-Wextra", "-Werror")
SECONDS = 120


def need(program: str, package: str) -> str:
    """Return the path of a program that the tests cannot do without."""
    found = shutil.which(program)
    assert found, f"{program} is missing: apt-get install {package}"
    return found


def windows_path(path: Path) -> str:
    """Return how a program of Windows calls a file."""
    return "Z:" + str(path).replace("/", "\\")


def build_tracer(out: Path) -> Path:
    """Build windows-tracer.exe for x86-64 and i686; return the folder that has both."""
    need(GCC, "gcc-mingw-w64-x86-64-win32")
    need("i686-w64-mingw32-gcc", "gcc-mingw-w64-i686-win32")
    done = subprocess.run(
        ["make", "-C", str(TOP / "native/windows"), f"OUT={out}", "VERSION=0.test"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def build_program(source: Path, out: Path, *flags: str, gcc: str = GCC) -> Path:
    """Build a program of the tests for Windows."""
    compiler = need(gcc, "gcc-mingw-w64-x86-64-win32 gcc-mingw-w64-i686-win32")
    command: list[str | Path] = [
        compiler,
        "-municode",
        "-O1",
        *WARNINGS,
        *flags,
        "-o",
        out,
        source,
        "-lntdll",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@dataclass(frozen=True, slots=True)
class Done:
    """What a run under Wine said, and its status (Wine hands on eight bits)."""

    status: int
    out: str
    error: str


@dataclass(frozen=True, slots=True)
class Wine:
    """A prefix with the tracer."""

    prefix: Path
    tracer: Path
    loader: str = WINE

    @property
    def environment(self) -> dict[str, str]:
        """What programs under Wine are started with; nothing of the user's but HOME and PATH."""
        kept = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
        return {
            **kept,
            "LANG": "C.UTF-8",
            "WINEPREFIX": str(self.prefix),
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "mscoree=;mshtml=;winemenubuilder.exe=",
        }

    def run(
        self,
        words: Sequence[str | Path],
        cwd: Path,
        *,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
    ) -> Done:
        """Run a program of Windows to its end.

        Its output goes to files: what Wine starts in the background may hold pipes open forever.
        """
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
            done = subprocess.run(
                [need(self.loader, "wine64"), *words],
                cwd=cwd,
                env={**self.environment, **(env or {})},
                input=stdin.encode(),
                stdout=out,
                stderr=error,
                timeout=SECONDS,
                check=False,
            )
            out.seek(0)
            error.seek(0)
            return Done(done.returncode, out.read().decode(), error.read().decode())

    def set_version(self, version: str, program: str = "") -> None:
        """Let all programs, or one, see a version of Windows; Wine's own choice varies."""
        key = r"HKCU\Software\Wine" + (rf"\AppDefaults\{program}" if program else "")
        words = ["reg", "add", key, "/v", "Version", "/d", version, "/f"]
        done = self.run(words, self.prefix)
        assert done.status == 0, done

    def trace(
        self, cwd: Path, *words: str | Path, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Done:
        """Run the tracer with these words."""
        return self.run([self.tracer, *words], cwd, env=env, stdin=stdin)


@contextmanager
def wine(folder: Path, tracer: Path, loader: str = WINE) -> Iterator[Wine]:
    """Make a prefix in `folder`; end what runs in it and remove it."""
    it = Wine(folder / "prefix", tracer, loader)
    done = it.run(["wineboot", "-i"], folder)
    assert done.status == 0, done
    try:
        it.set_version("win10")
        with _services(it, folder):
            yield it
    finally:
        subprocess.run([SERVER, "-k"], env=it.environment, check=False, timeout=SECONDS)
        subprocess.run([SERVER, "-w"], env=it.environment, check=False, timeout=SECONDS)
        shutil.rmtree(it.prefix, ignore_errors=True)


@contextmanager
def _services(it: Wine, folder: Path) -> Iterator[None]:
    """Keep Wine's services running by a shell that waits for input.

    They start and end with the first and the last program of a prefix. That takes time in each run,
    and when one of them crashes (ntoskrnl of Wine 8 does at times), Wine says so in its output.
    """
    with subprocess.Popen(
        [need(it.loader, "wine64"), "cmd"],
        cwd=folder,
        env=it.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as shell:
        try:
            yield
        finally:
            shell.kill()


def read_spec(path: Path) -> list[dict[str, Any]]:
    """Return the items of a build spec."""
    items = json.loads(path.read_text())
    assert isinstance(items, list)
    return items


def reported(path: Path) -> list[dict[str, Any]]:
    """Return what the programs reported about themselves, in the order of time."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def plain(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return directory and arguments of items of a build spec."""
    return [{"directory": it["directory"], "arguments": it["arguments"]} for it in items]
