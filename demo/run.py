# SPDX-License-Identifier: Apache-2.0
"""`make demo`: trace, parse, question and show the build of a real C project (Lua), start to end.

The source comes from the distribution's source archive; without a network the tiny project in
demo/hello is built instead, and the demo says so.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests"))

import sources  # noqa: E402  found through the line above

PACKAGE = "lua5.4"
LUA_BUILD = ["make", f"-j{os.cpu_count() or 1}", "linux"]
HELLO_BUILD = ["make", f"-j{os.cpu_count() or 1}"]
#: of each project: a binary that it makes and a header that went into it
ASKED = {"lua": ("src/lua", "src/lvm.h"), "hello": ("hello", "words.txt")}


def say(text: str) -> None:
    """Print a headline."""
    print(f"\n== {text}", flush=True)


def run(command: list[str | Path], cwd: Path) -> None:
    """Show a command as a user would type it, and run it."""
    shown = shlex.join([Path(command[0]).name, *(str(a) for a in command[1:])])
    print(f"$ {shown}", flush=True)
    done = subprocess.run([str(a) for a in command], cwd=cwd, check=False)
    if done.returncode:
        sys.exit(f"demo: `{shown}` ended with status {done.returncode}")


def project(where: Path) -> tuple[Path, list[str]]:
    """Return a fresh source tree under `where` and the command that builds it."""
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    try:
        return sources.fetch(PACKAGE, where), LUA_BUILD
    except (sources.SourceError, OSError) as error:
        why = str(error).splitlines()[0]
        print(f"demo: cannot fetch the source of {PACKAGE} ({why})")
        print("demo: OFFLINE FALLBACK: building the tiny project in demo/hello instead")
        return shutil.copytree(TOP / "demo" / "hello", where / "hello"), HELLO_BUILD


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, default=TOP / "build" / "demo", help="where to build")
    args = parser.parse_args()
    bin_dir = Path(sys.executable).parent
    say("the source")
    tree, build = project(args.dir.absolute())
    print(tree)
    say("capture: build it under etrace (no root, no kernel module)")
    run([bin_dir / "etrace", "run", "--env", "--", *build], tree)
    say("parse: event lines to executions")
    run([bin_dir / "etrace_parser", "--stats", ".nfsdb", ".nfsdb.json"], tree)
    say("what the build did")
    run([bin_dir / "etrace", "summary"], tree)
    say("the database: linked modules, compilations, dependencies")
    binary, header = ASKED["hello" if build is HELLO_BUILD else "lua"]
    cas = bin_dir / "cas"
    run([cas, "pp"], tree)
    run([cas, "linked-modules", "--relative"], tree)
    run([cas, "deps", binary, "--count"], tree)
    run([cas, "why", binary, header], tree)
    run([cas, "unused", ".", "--relative"], tree)
    print(f"\nThe trace and the database are in {tree}: .nfsdb, .nfsdb.json, .nfsdb.img")
    say("the build as a page")
    run([bin_dir / "etrace", "report"], tree)
    print(f"\nOpen it in a browser: {tree / 'build.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
