# SPDX-License-Identifier: Apache-2.0
"""Three projects that people know, under every backend, held against what is known of them.

Linux (tinyconfig), git, and what TableGen of LLVM needs: Debian's sources, the newest that
this machine's apt has. Each is built without etrace and under each backend in turns, `--rounds`
times, all with two jobs; the others (Bear, strace) once. What was traced by ptrace is parsed,
asked and compared: with what the compilers themselves said that they read (depfiles), with the
other backends, and with a build by one job. Seconds are of this machine; ratios are what counts.

    make proof            or    python bench/proof.py [--rounds N] [--project NAME]... [--keep DIR]

It prints the tables of docs/proof.md. It needs root for BPF, 8 GB of disk and some hours.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import paired
from kernel import cmd_files
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image
from paired import Candidate, Figure
from samples import CAS, PROGRAMS, TOP

from etrace.capture.bpf import backend as bpf
from etrace.nfsdb.store import open_database
from etrace.query.dependencies import deps
from etrace.query.rows.file_kinds import USUAL, FileKind, FileKinds
from etrace.timing.what_if import predict

sys.path.insert(0, str(TOP / "tests"))

import package_builds
import sources

#: what `-MMD` leaves out of a depfile
SYSTEM = ("/usr/include/", "/usr/lib/gcc/")
RUN = (FileKind.EXECUTABLE, FileKind.TOOL)
BACKENDS = ("ptrace", "bpf", "preload", "strace")
#: files as a depfile names them, by the object that was compiled from them
Depfiles = Mapping[Path, set[str]]


def _of_kbuild(tree: Path) -> Depfiles:
    """Read `.NAME.o.cmd`: the source and what gcc read, without include/config/*."""
    found, tree = {}, tree.with_name("out")
    for file in tree.rglob(".*.o.cmd"):
        if file.is_relative_to(tree / "tools"):  # names are relative to several directories
            continue
        text = file.read_text("utf-8", "surrogateescape")
        named = [*cmd_files.SOURCE.findall(text), *cmd_files.DEPENDENCIES.findall(text)]
        words = cmd_files.WILDCARD.sub("", " ".join(named)).replace("\\\n", " ").split()
        target = tree / cmd_files.TARGET.findall(text)[0]
        if words:
            found[target] = {str((tree / word).resolve()) for word in words}
    return found


def _of_makefiles(tree: Path) -> Depfiles:
    """Read `.depend/NAME.o.d` of git's makefile."""
    found: dict[Path, set[str]] = {}
    for file in tree.rglob(".depend/*.o.d"):
        for target, names in package_builds.rules_of(file.read_text()):
            own = found.setdefault((tree / target).resolve(), set())
            own |= {str((tree / name).resolve()) for name in names}
    return found


def _of_ninja(tree: Path) -> Depfiles:
    """Ask ninja for what it read in depfiles, which it removes."""
    said = subprocess.run(
        ["ninja", "-C", "out", "-t", "deps"], cwd=tree, check=True, capture_output=True, text=True
    ).stdout
    found: dict[Path, set[str]] = {}
    for line in said.splitlines():
        if match := re.match(r"(\S+): #deps", line):
            own = found.setdefault(tree / "out" / match[1], set())
        elif line.startswith("    "):
            own.add(str((tree / "out" / line.strip()).resolve()))
    return found


@dataclass(frozen=True, slots=True)
class Project:
    """What is built, and which file of it is asked about."""

    name: str
    source: str  #: package of Debian
    prepare: str  #: once, without etrace
    command: str  #: with {jobs}
    clean: str
    product: str
    header: str
    depfiles: Callable[[Path], Depfiles]


LLVM = (
    "cmake -S llvm -B out -G Ninja -DCMAKE_BUILD_TYPE=MinSizeRel"
    " -DCMAKE_CXX_FLAGS_MINSIZEREL=-O0 -DCMAKE_C_FLAGS_MINSIZEREL=-O0 -DLLVM_TARGETS_TO_BUILD=X86"
    " -DLLVM_INCLUDE_BENCHMARKS=OFF -DLLVM_INCLUDE_TESTS=OFF -DLLVM_ENABLE_ZSTD=OFF"
    " -DLLVM_ENABLE_TERMINFO=OFF -DLLVM_INCLUDE_UTILS=ON"
)
KBUILD = "O=../out ARCH=x86_64"
GIT = "NO_CURL=1 NO_GETTEXT=1 NO_TCLTK=1 NO_PERL=1 NO_PYTHON=1 NO_EXPAT=1 NO_OPENSSL=1"
PROJECTS = (
    Project(
        "linux", "linux", f"make -s {KBUILD} tinyconfig && cp ../out/.config ../config",
        f"make -s -j{{jobs}} {KBUILD} vmlinux",
        "rm -rf ../out && mkdir ../out && cp ../config ../out/.config",
        "out/vmlinux", "tree/include/linux/list.h", _of_kbuild,
    ),
    Project(
        "git", "git", ":",
        f"make -s -j{{jobs}} {GIT} COMPUTE_HEADER_DEPENDENCIES=yes CFLAGS=-O0 git",
        f"make -s {GIT} clean; rm -rf .depend */.depend",
        "tree/git", "tree/strbuf.h", _of_makefiles,
    ),
    Project(
        "llvm", "llvm-toolchain-14", LLVM,
        "ninja -C out -j{jobs} lib/libLLVMTableGen.a",
        "ninja -C out -t clean; rm -f out/.ninja_deps out/.ninja_log",
        "tree/out/lib/libLLVMTableGen.a", "tree/llvm/include/llvm/ADT/StringRef.h", _of_ninja,
    ),
)  # fmt: skip


class Bench:
    """A project in a scratch directory."""

    def __init__(self, project: Project, scratch: Path) -> None:
        self.project, self.scratch = project, scratch
        self.tree, self.traces = scratch / "tree", scratch / "traces"
        if not self.tree.exists():
            sources.fetch(project.source, scratch / "src").rename(self.tree)
            self.shell(project.prepare)
        for name in (*BACKENDS, "one-job"):
            (self.traces / name).mkdir(parents=True, exist_ok=True)

    def shell(self, script: str) -> None:
        """Run a script in the tree; what it prints is shown when it fails."""
        done = subprocess.run(
            ["sh", "-e", "-c", script], cwd=self.tree, capture_output=True, check=False
        )
        if done.returncode:
            sys.exit(f"proof: {script}: {done.stderr[-2000:].decode(errors='replace')}")

    def candidate(self, name: str, before: Sequence[str], jobs: int = 2) -> Candidate:
        """Return a way to build."""
        script = self.project.command.format(jobs=jobs)
        clean = partial(self.shell, self.project.clean)
        return Candidate(name, [*before, "sh", "-c", script], self.tree, clean)

    def traced(self, backend: str, jobs: int = 2, name: str = "") -> Candidate:
        """Return the build under a backend; its trace has that name, or another one."""
        where = str(self.traces / (name or backend))
        words = [str(PROGRAMS / "etrace"), "run", "-q", "-o", where, "--backend", backend, "--"]
        return self.candidate(backend, words, jobs)

    def others(self) -> list[Candidate]:
        """Return the build under other tools that are installed."""
        bear = ["bear", "--output", str(self.scratch / "compile_commands.json"), "--"]
        strace = ["strace", "-f", "-o", str(self.scratch / "strace.out")]
        both = {"Bear": bear, "strace -f": strace}
        return [self.candidate(name, words) for name, words in both.items()
                if shutil.which(words[0])]  # fmt: skip

    def database(self, backend: str) -> Path:
        """Return the directory of the database of a backend's last trace."""
        return self.traces / backend


# ---- the tables ----


def row(*cells: object) -> None:
    """Print a row of a table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def head(title: str, *names: str) -> None:
    """Print the head of a table."""
    print(f"\n**{title}**\n")
    row(*names)
    row(*(["---"] + ["--:"] * (len(names) - 1)))


def costs(bench: Bench, rounds: int) -> None:
    """Build natively and traced in turns, then once under the others."""
    usable = [name for name in BACKENDS if name != "bpf" or bpf.BpfBackend().probe().works]
    native = bench.candidate("native", [])
    others = bench.others() if rounds > 1 else []
    if rounds > 1:
        paired.once(native)  # warms the caches
    *quick, slow = map(bench.traced, usable)
    found = paired.compare([native, *quick], rounds)
    once = paired.compare([native, slow, *others], 1) if rounds > 1 else []
    head(f"{bench.project.name}: what tracing costs", "", "wall", "CPU", "trace", "opens")
    row("native", f"{found[0].wall:.0f} s", f"{found[0].cpu:.0f} s", "", "")
    for figure in (*found[1:], *once[1:2]):
        where = bench.database(figure.name)
        subprocess.run([CAS, "parse", "-q", "--db", where, where / ".nfsdb"], check=True)
        size = (where / ".nfsdb").stat().st_size / 1e6
        opens = f"{open_database(where)['opens'].n_rows:,}"
        times = ", once" if figure in once else ""
        row(f"`{figure.name}`{times}", *_ratios(figure), f"{size:.0f} MB", opens)
    for figure in once[2:]:
        size = (bench.scratch / _WRITES[figure.name]).stat().st_size / 1e6
        row(f"{figure.name}, once", *_ratios(figure), f"{size:.0f} MB", "")


_WRITES = {"Bear": "compile_commands.json", "strace -f": "strace.out"}


def _ratios(figure: Figure) -> tuple[str, str]:
    return f"{figure.wall_ratio:.2f}", f"{figure.cpu_ratio:.2f}"


def database(bench: Bench) -> Image:
    """Parse and ask; return the database of ptrace."""
    where, project = bench.database("ptrace"), bench.project
    product, header = str(bench.scratch / project.product), str(bench.scratch / project.header)
    head(f"{project.name}: parse, post-process, ask (ptrace)", "", "wall", "CPU", "answer")
    for path in where.glob(".nfsdb.*"):
        if path.name != ".nfsdb.stats":
            path.unlink()
    commands = {
        "`cas parse`": [CAS, "parse", "-q", "--db", str(where), str(where / ".nfsdb")],
        "`cas pp`": [CAS, "pp", "-q", "--db", str(where)],
        f"`cas deps {project.product}`": [CAS, "deps", product, "--count", "--db", str(where)],
        f"`cas rdeps {project.header}`": [CAS, "rdeps", header, "--count", "--db", str(where)],
        "`cas compiled`": [CAS, "compiled", "--count", "--db", str(where)],
        "`cas linked-modules`": [CAS, "linked-modules", "--count", "--db", str(where)],
        f"`cas why {project.product} {project.header}`":
            [CAS, "why", product, header, "--db", str(where)],
        "`cas export sbom`": [CAS, "export", "sbom", product, "--db", str(where),
                              "-o", str(bench.scratch / "sbom.json")],
        "`etrace check`": [str(PROGRAMS / "etrace"), "check", "--run-shell", "--db", str(where)],
        "`etrace critical-path`": [str(PROGRAMS / "etrace"), "critical-path", "--db", str(where)],
    }  # fmt: skip
    for name, command in commands.items():
        began = time.monotonic()
        before = os.times()
        done = subprocess.run(command, cwd=bench.tree, capture_output=True, text=True, check=False)
        wall, now = time.monotonic() - began, os.times()
        cpu = now.children_user - before.children_user
        cpu += now.children_system - before.children_system
        row(name, f"{wall:.2f} s", f"{cpu:.2f} s", _answer(done))
    image = open_database(where)
    n_rows = {name: f"{image[name].n_rows:,}" for name in ("executions", "opens")}
    size = (where / ".nfsdb.img").stat().st_size / 1e6
    print(f"\n{n_rows['executions']} executions, {n_rows['opens']} opens, image {size:.0f} MB")
    return image


def _answer(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stdout + done.stderr).strip().splitlines()
    if done.returncode > 1:
        return f"status {done.returncode}: {lines[-1] if lines else ''}"
    number = done.stdout.strip()
    return number if number.isdigit() else (lines[-1][:90].replace("|", "\\|") if lines else "")


def edges(bench: Bench, image: Image) -> None:
    """Hold the dependencies of every object against its depfile."""
    engine, kind_of = Dependencies(image), FileKinds(image).of
    made: dict[str, set[str]] = {}

    def closure(path: str) -> set[str]:
        if path not in made:
            raw = os.fsencode(path)
            row = image.find_path(raw)
            found = deps(engine, [raw], Rules()) if row >= 0 else []
            made[path] = {
                os.fsdecode(each) for each in found if kind_of(image.find_path(each)) in USUAL
            }
        return made[path]

    n_named, missing, extra = 0, [], Counter[str]()
    objects = bench.project.depfiles(bench.tree)
    for target, named in objects.items():
        everything = {os.fsdecode(each) for each in deps(engine, [bytes(target)], Rules())}
        n_named += len(named)
        missing += [f"{target.name} <- {name}" for name in sorted(named - everything)]
        own = closure(str(target))
        # what was made by a program that the build made, as objtool rewrites objects
        made_by = [path for path in own if kind_of(image.find_path(os.fsencode(path))) in RUN]
        explained = {str(target), *named}.union(*map(closure, (*named, *made_by)))
        extra.update(own - explained)
    headers = sum(extra.pop(path) for path in [*extra] if path.startswith(SYSTEM))
    print(f"\nEdges: {len(objects):,} objects, {n_named:,} files named by depfiles, "
          f"{len(missing)} missing; {headers:,} more of the system's headers, {extra.total():,} "
          f"others in {len(extra):,} files.")  # fmt: skip
    for line in missing[:10]:
        print(f"- missing: {line}")
    for path, number in extra.most_common(10):
        print(f"- more: {path.removeprefix(str(bench.tree) + '/')} ({number} objects)")


def agreement(bench: Bench) -> None:
    """Compare the closure of the product under each backend with that of ptrace."""
    found = {}
    for name in BACKENDS:
        where = bench.database(name)
        if (where / ".nfsdb.img").exists():
            image = open_database(where)
            raw = bytes(bench.scratch / bench.project.product)
            found[name] = {os.fsdecode(each) for each in deps(Dependencies(image), [raw], Rules())}
    for name, own in found.items():
        if name != "ptrace":
            less, more = _lasting(found["ptrace"] - own), _lasting(own - found["ptrace"])
            print(f"\n`{name}` and ptrace, closure of {bench.project.product}: "
                  f"{len(less)} missing, {len(more)} more of {len(found['ptrace']):,}"
                  f"{_shown(less)}{_shown(more)}")  # fmt: skip


_RANDOM = re.compile(r"/(tmp|proc|dev)/|/st\w{6}$|\.tmp|\.lock$")


def _lasting(paths: Iterable[str]) -> list[str]:
    return sorted(path for path in paths if not _RANDOM.search(path))


def _shown(paths: Sequence[str]) -> str:
    return f" ({', '.join(paths[:3])}{' ..' if len(paths) > 3 else ''})" if paths else ""


def reruns(bench: Bench) -> None:
    """Predict the build by one job of that by two, then run it; both under the same backend."""
    backend = "bpf" if (bench.database("bpf") / ".nfsdb.img").exists() else "ptrace"
    predicted = predict(open_database(bench.database(backend)), {}, 1).predicted_ns / 1e9
    measured = paired.once(bench.traced(backend, 1, "one-job")).wall
    print(f"\nWhat if, `--what-if-jobs 1` ({backend}): predicted {predicted:.0f} s, run "
          f"{measured:.0f} s ({100 * (predicted / measured - 1):+.0f} %).")  # fmt: skip


def faults(bench: Bench) -> None:
    """Count what `etrace check` reports."""
    done = subprocess.run(
        [PROGRAMS / "etrace", "check", "--run-shell", "--db", bench.database("ptrace"),
         "--format", "json"],
        cwd=bench.tree, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode > 1:
        print(f"\ncheck: {done.stderr.strip()}")
        return
    ids = Counter(each["id"] for each in json.loads(done.stdout)["faults"])
    print(f"\ncheck: {', '.join(f'{n} {name}' for name, n in sorted(ids.items())) or 'no fault'}")


def prove(project: Project, scratch: Path, rounds: int) -> None:
    """Print the tables of a project."""
    bench = Bench(project, scratch)
    print(f"\n## {project.name}\n\n`{project.command.format(jobs=2)}`", flush=True)
    if rounds:
        costs(bench, rounds)
    image = database(bench)
    edges(bench, image)
    agreement(bench)
    faults(bench)
    reruns(bench)


def main() -> None:
    """Print the tables of all projects."""
    parser = argparse.ArgumentParser(description="Prove etrace on projects that people know.")
    names = [project.name for project in PROJECTS]
    parser.add_argument("--rounds", type=int, default=3, help="0: only ask the kept traces")
    parser.add_argument("--project", action="append", choices=names, help="may be repeated")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="build there, and keep it")
    args = parser.parse_args()
    chosen = [each for each in PROJECTS if each.name in (args.project or names)]
    where = args.keep or Path(tempfile.mkdtemp(prefix="etrace-proof-"))
    print(f"{os.cpu_count()} processors, Linux {os.uname().release}, {args.rounds} rounds")
    try:
        for project in chosen:
            prove(project, where / project.name, args.rounds)
    finally:
        if not args.keep:
            shutil.rmtree(where)


if __name__ == "__main__":
    main()
