# SPDX-License-Identifier: Apache-2.0
"""Is what `etrace check` reports true? Packages of Debian are built, and each fault is tried.

A missing input: the file becomes newer, make runs, and the target stays unchanged (stale); then the
file is emptied, the target removed, and make must fail or make another target (input). A missing
order or directory: the file and the target are removed, and make is asked for the target alone: it
must fail or make another target; a phony one is made again (-B). An undeclared output: the file and
its reader are removed; make must fail or leave the file away. Two writers: either target alone must
write the file. Each trial is in a fresh copy of the built tree, at the same path.

    python3 bench/check.py [--work DIR] [--most N] [--jobs N] [PACKAGE...]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
#: packages and what prepares them
PACKAGES = {
    "epstool": "", "bzip2": "", "zlib": "./configure", "figlet": "", "units": "./configure",
    "mawk": "./configure", "disktype": "", "html2text": "./configure", "tree": "",
    "hdparm": "", "jattach": "", "original-awk": "", "unadf": "", "xa": "", "clearcut": "",
    "stm32flash": "", "phalanx": "", "libpri": "", "mini-httpd": "", "can-utils": "", "lua5.4": "",
    "rinetd": "./configure", "qqwing": "./configure", "libestr": "./configure",
    "ed": "./configure", "libogg": "./configure", "fossil": "./configure --disable-fusefs",
    "lz4": "", "memtester": "", "vblade": "", "mujs": "", "giflib": "", "hello": "./configure",
    "dash": "./configure", "gzip": "./configure", "patch": "./configure", "m4": "./configure",
    "psmisc": "./configure", "gperf": "./configure", "nano": "./configure",
    "pv": "./configure", "dos2unix": "", "sl": "", "xxhash": "", "utf8proc": "", "lmdb": "",
    "zopfli": "", "libb64": "", "libdeflate": "", "scdoc": "", "tinycdb": "",
    "argtable2": "./configure", "popt": "./configure", "libyaml": "cmake -S . -B build",
    "cjson": "cmake -S . -B build", "tinyxml2": "cmake -S . -B build",
    "json-c": "cmake -S . -B build", "cmocka": "cmake -G Ninja -S . -B build",
    "jansson": "cmake -G Ninja -S . -B build", "pixman": "meson setup build",
    "fribidi": "meson setup build -Ddocs=false",
}  # fmt: skip
#: how those are built that plain make does not build
BUILDS = {
    "cjson": "make -C build", "tinyxml2": "make -C build", "json-c": "make -C build",
    "cmocka": "ninja -C build", "jansson": "ninja -C build", "fribidi": "ninja -C build",
    "pixman": "ninja -C build", "libyaml": "make -C build", "lmdb": "make -C libraries/liblmdb",
}  # fmt: skip
LATER_S = 100.0
#: what no compiler, shell or version script accepts
SPOILT = b"#error )spoilt(\n"


def run(directory: Path, *words: str) -> int:
    """Run a command in a directory; return its status."""
    done = subprocess.run(
        words, cwd=directory, capture_output=True, check=False, timeout=600,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode


class Trial:
    """A built tree, and what is reported of it."""

    def __init__(self, tree: Path, build: Sequence[str]) -> None:
        self.tree, self.kept, self.build = tree, tree.with_name(tree.name + ".kept"), build
        subprocess.run(["cp", "-a", tree, self.kept], check=True)

    def make(self, fault: dict[str, Any] | None = None, *words: str) -> int:
        """Build all, or ask the tool that a fault is of for a target; return the status."""
        if fault is None:
            return run(self.tree, *self.build)
        directory, makefile = Path(fault["directory"]), Path(fault["makefile"])
        if makefile.suffix == ".ninja":
            return run(directory, "ninja", *words)
        return run(directory, "make", "-f", str(makefile), *words)

    def restore(self) -> None:
        """Put the built tree back."""
        subprocess.run(["rsync", "-a", "--delete", f"{self.kept}/", f"{self.tree}/"], check=True)

    def is_true(self, fault: dict[str, Any]) -> bool | None:
        """Return whether a fault is confirmed; None when this script cannot try it."""
        file = Path(fault["file"])
        target = Path(fault["directory"]) / fault["targets"][0]
        self.restore()
        if fault["id"] == "missing-order" and not target.is_file():  # phony
            file.unlink()
            return self.make(fault, "-B", fault["targets"][0]) != 0
        if not target.is_file() or fault["id"] == "shared-temporary":
            return None
        if fault["id"] == "two-writers":
            return all(self.writes(fault, name) for name in (*fault["made_for"][:1], target))
        before = target.read_bytes(), target.stat().st_mtime_ns
        if fault["id"] in ("missing-order", "missing-directory"):
            target.unlink()
            if file.is_dir():
                shutil.rmtree(file)
            file.unlink(missing_ok=True)
            status = self.make(fault, fault["targets"][0])
            return status != 0 or target.read_bytes() != before[0]
        if fault["id"] == "undeclared-output":
            target.unlink()
            file.unlink()
            return self.make() != 0 or not file.exists()
        return self.is_stale(file, target, before[1])

    def writes(self, fault: dict[str, Any], name: str | Path) -> bool:
        """Return whether a target alone writes the file of a fault."""
        self.restore()
        directory, file = Path(fault["directory"]), Path(fault["file"])
        file.unlink(missing_ok=True)
        (directory / name).unlink(missing_ok=True)
        self.make(fault, str(name).removeprefix(f"{directory}/"))
        return file.exists()

    def is_stale(self, file: Path, target: Path, made_ns: int) -> bool:
        """Return whether a newer input is not seen, and is one."""
        later = time.time() + LATER_S
        os.utime(file, (later, later))
        self.make()
        if target.stat().st_mtime_ns != made_ns:
            return False
        self.restore()
        target.unlink()
        self.make()
        again = target.read_bytes() if target.exists() else b""
        self.restore()
        target.unlink()
        file.write_bytes(SPOILT)
        status = self.make()
        return status != 0 or not target.exists() or target.read_bytes() != again


def row(package: str, work: Path, most: int, jobs: int) -> str:
    """Build and check a package; return its line of the table."""
    folder = work / package
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, ROOT / "tests/sources.py", package, folder],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    tree = Path(done.stdout.splitlines()[-1])
    if prepare := PACKAGES.get(package):
        path = f"{BIN}:{os.environ['PATH']}"  # for meson
        subprocess.run(
            ["sh", "-c", prepare], cwd=tree, env={**os.environ, "PATH": path}, check=True,
            capture_output=True,
        )  # fmt: skip
    began = time.monotonic()
    build = [*BUILDS.get(package, "make").split(), f"-j{jobs}"]
    command: list[str | Path] = [
        BIN / "etrace",
        "run",
        "--env",
        "-q",
        "--backend",
        "ptrace",
        "--",
        *build,
    ]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    built = time.monotonic() - began
    for name in ("parse", "pp"):
        subprocess.run([BIN / "cas", name], cwd=tree, check=True, capture_output=True)
    began = time.monotonic()
    check = subprocess.run(
        [BIN / "etrace", "check", "--run-shell", "--json"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.monotonic() - began
    found = json.loads(check.stdout)
    trial = Trial(tree, build)
    verdicts = [trial.is_true(fault) for fault in found["faults"][:most]]
    for fault, verdict in zip(found["faults"], verdicts, strict=False):
        print(verdict, fault["id"], fault["file"], fault["targets"][:3], file=sys.stderr)
    counts = [len(found["faults"]), *(verdicts.count(each) for each in (True, False, None))]
    known = f"{found['n_commands_with_targets']} of {found['n_commands']}"
    cells = [tree.name, known, *map(str, counts), f"{built:.1f} s", f"{took:.1f} s"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", metavar="PACKAGE", nargs="*", default=list(PACKAGES))
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "etrace-check")
    parser.add_argument("--most", type=int, default=20, help="try so many faults of a package")
    parser.add_argument("--jobs", type=int, default=1, help="build with so many jobs")
    args = parser.parse_args()
    print("| package | commands judged | reported | confirmed | refuted | not tried |"
          " build, traced | check |")  # fmt: skip
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for package in args.packages:
        try:
            print(row(package, args.work, args.most, args.jobs), flush=True)
        except (subprocess.SubprocessError, ValueError, IndexError) as error:
            print(f"{package}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
