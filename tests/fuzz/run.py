# SPDX-License-Identifier: Apache-2.0
"""Build and run the libFuzzer targets: `python tests/fuzz/run.py format --runs 1000000`.

Every target is built by clang with AddressSanitizer and UndefinedBehaviorSanitizer. A crash, an
input that takes longer than `--input-seconds` or memory above `--rss-mb` ends the run with status
1; the input that did it is kept in the build directory and named.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TOP = HERE.parents[1]
CLANG = ("clang-19", "clang")
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
#: Cython's loops compute NULL + 0, which C2y allows; ASan sees the accesses that would be wrong
PARSER_SANITIZE = [*SANITIZE, "-fno-sanitize=pointer-overflow"]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


class FuzzError(Exception):
    """A target could not be built or did not survive; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Target:
    """A fuzz target: how it is built, the longest input worth trying, words of its language.

    `runs` is how many executions `make fuzz` asks of it.
    """

    build: Callable[[Path], Path]
    max_len: int
    runs: int = 1_000_000
    dictionary: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run ends and what it may use."""

    runs: int
    seconds: int
    input_seconds: int = 5
    rss_mb: int = 1024


USES = re.compile(r"^(?:from|import|cimport) libetrace\.([\w.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Figures:
    """What libFuzzer reports at the end of a run."""

    executions: int
    seconds: float
    peak_rss_mb: int
    n_edges: int

    def __str__(self) -> str:
        rate = self.executions / max(self.seconds, 1e-9)
        return (
            f"{self.executions} executions in {self.seconds:.0f} s ({rate:.0f}/s), "
            f"{self.n_edges} edges covered, peak memory {self.peak_rss_mb} MB"
        )


def compiler() -> str:
    """Return the clang to use."""
    for name in CLANG:
        if shutil.which(name):
            return name
    raise FuzzError("no clang: apt-get install clang-19 libclang-rt-19-dev")


def build(out: Path, name: str, sources: Iterable[Path], *options: str) -> Path:
    """Build a target from its C sources."""
    program = out / f"fuzz_{name}"
    words = ["-std=gnu11", "-g", "-O1", *WARNINGS, "-fsanitize=fuzzer", *SANITIZE, *options]
    run_build([compiler(), *words, "-o", str(program), *map(str, sources)])
    return program


def including(*folders: str) -> list[str]:
    """Return the options for headers in some folders."""
    return [f"-I{TOP / folder}" for folder in folders]


def build_format(out: Path) -> Path:
    """Build the formatter's target."""
    sources = [HERE / "fuzz_format.c", TOP / "native/format/etrace_format.c"]
    return build(out, "format", sources, *including("native/format", "kmod/include"))


def build_collect(out: Path) -> Path:
    """Build the target of etrace_cat: pages of the ring buffer to text."""
    folders = ["native", "native/collect", "native/format", "kmod/include"]
    names = [
        "collect/page.c",
        "collect/merge.c",
        "format/etrace_format.c",
        "format/etrace_record.c",
    ]
    sources = [HERE / "fuzz_collect.c", *(TOP / "native" / name for name in names)]
    return build(out, "collect", sources, *including(*folders))


def build_patterns(out: Path) -> Path:
    """Build the target of the command patterns: every answer against fnmatch(3)."""
    engine = "cython/glob-engine"
    sources = [HERE / "fuzz_patterns.c", *sorted((TOP / engine).glob("*.c"))]
    return build(out, "patterns", sources, "-DGRAM_BITS=6", *including(engine))


def build_windows(out: Path) -> Path:
    """Build the target of the tracer for Windows: command lines, response files, JSON, UTF-16."""
    text = "native/windows/text"
    sources = [TOP / "tests/windows/programs/text.c", *sorted((TOP / text).glob("*.c"))]
    sources.append(TOP / "native/format/etrace_format.c")
    folders = including(text, "native/format", "kmod/include")
    return build(out, "windows", sources, "-DFUZZ", *folders)


def run_build(command: list[str], cwd: Path = TOP, env: dict[str, str] | None = None) -> None:
    """Run one command of a build; what it printed is the error."""
    beside = str(Path(sys.executable).parent)  # meson, ninja and cython of the same environment
    path = os.pathsep.join([beside, os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "PATH": path, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise FuzzError(f"{' '.join(command[:3])} ... failed:\n{done.stdout}{done.stderr}")


def modules_of(name: str, folder: Path = TOP / "cython/libetrace") -> set[str]:
    """Return a native module and all that it needs, as their sources say."""
    found, rest = set[str](), [name]
    while rest:
        one = rest.pop()
        place = one.replace(".", "/")
        if one in found or not (folder / f"{place}.pyx").exists():
            continue
        found.add(one)
        for path in folder.glob(f"{place}.p[yx][xd]"):
            rest += USES.findall(path.read_text())
    return found


def build_modules(out: Path, module: str) -> None:
    """Build a native module with coverage and sanitizers, for import from `out`/site."""
    build = out / "modules"
    flags = " ".join(
        ["-g", "-DETRACE_BLOCK_BYTES=1", "-fsanitize=fuzzer-no-link", *PARSER_SANITIZE]
    )
    if not (build / "build.ninja").exists():
        run_build(
            ["meson", "setup", str(build), str(TOP), "-Db_lundef=false"],
            env={"CC": compiler(), "CFLAGS": flags, "LDFLAGS": flags},
        )
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    modules = ("_cyutility", *modules_of(module))
    libraries = [f"libetrace/{one.replace('.', '/')}{suffix}" for one in modules]
    built = {library: f"cython/libetrace/{Path(library).name}" for library in libraries}
    run_build(["ninja", "-C", str(build), *built.values()])
    packages = {Path("libetrace"), *(Path(library).parent for library in libraries)}
    for package in packages:
        (out / "site" / package).mkdir(parents=True, exist_ok=True)
        sources = (TOP / "cython" / package).iterdir()
        for source in (each for each in sources if each.suffix in {".py", ".json"}):
            shutil.copy(source, out / "site" / package)
    for library, path in built.items():
        shutil.copy(build / path, out / "site" / library)


def embedding(name: str, module: str, function: str, *options: str) -> Callable[[Path], Path]:
    """Return what builds a target that embeds the interpreter which runs this."""

    def build_it(out: Path) -> Path:
        build_modules(out, module)
        library = Path(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LDLIBRARY"))
        if library.suffix != ".so" or not library.exists():
            raise FuzzError(f"no shared libpython at {library}: apt-get install libpython3-dev")
        words = [f'-DMODULE="libetrace.{module}"', f'-DFUNCTION="{function}"', *options]
        words += [f"-I{sysconfig.get_path('include')}", f"-Wl,-rpath,{library.parent}"]
        return build(out, name, [HERE / "fuzz_embedded.c", library], *words)

    return build_it


build_parser = embedding("parser", "trace.parser", "etrace_parse_memory", "-DTAKES_CHUNK_BYTES")
build_xray = embedding("xray", "xray.account", "etrace_xray_account_memory")
build_dwarf = embedding("dwarf", "xray.subprograms", "etrace_xray_debug_memory")
TARGETS = {
    "collect": Target(build_collect, max_len=2048),
    "dwarf": Target(build_dwarf, max_len=1024),
    "format": Target(build_format, max_len=400),
    "parser": Target(build_parser, max_len=2000, runs=10_000_000, dictionary="parser.dict"),
    "xray": Target(build_xray, max_len=1024, runs=10_000_000),
    "patterns": Target(build_patterns, max_len=300, runs=5_000_000, dictionary="patterns.dict"),
    "windows": Target(build_windows, max_len=600),
}


def fuzz(name: str, out: Path, limits: Limits) -> Figures:
    """Build a target and run it from its corpus; FuzzError when it does not survive."""
    out.mkdir(parents=True, exist_ok=True)
    target = TARGETS[name]
    program = target.build(out)
    found = out / f"{name}.found"
    found.mkdir(exist_ok=True)
    options = {
        "runs": limits.runs,
        "max_total_time": limits.seconds,
        "timeout": limits.input_seconds,
        "rss_limit_mb": limits.rss_mb,
        "max_len": target.max_len,
        "artifact_prefix": f"{out}/{name}.",
        "print_final_stats": 1,
    }
    command = [str(program), *(f"-{key}={value}" for key, value in options.items())]
    if target.dictionary:
        command.append(f"-dict={HERE / target.dictionary}")
    began = time.monotonic()
    log_path = out / f"{name}.log"
    with log_path.open("wb") as log_file:
        done = subprocess.run(
            [*command, str(found), str(HERE / "corpus" / name)],
            stdout=log_file, stderr=log_file, check=False, env=environment(out),
        )  # fmt: skip
    log = log_path.read_text(errors="replace")
    if done.returncode:
        raise FuzzError(f"{name} did not survive, see {log_path}:\n{log[-4000:]}")
    return figures(log, time.monotonic() - began)


def environment(out: Path) -> dict[str, str]:
    """Return the variables that a target runs with."""
    home = sysconfig.get_config_var("prefix")
    return {**os.environ, "PYTHONPATH": str(out / "site"), "PYTHONHOME": home}


def figures(log: str, seconds: float) -> Figures:
    """Read libFuzzer's statistics."""

    def stat(key: str) -> int:
        match = re.search(rf"stat::{key}:\s+(\d+)", log)
        if not match:
            raise FuzzError(f"libFuzzer printed no {key}:\n{log[-2000:]}")
        return int(match[1])

    edges = [int(count) for count in re.findall(r"\bcov: (\d+)", log)]
    return Figures(
        stat("number_of_executed_units"), seconds, stat("peak_rss_mb"), max(edges, default=0)
    )


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS), nargs="*", help="default: all")
    parser.add_argument("--runs", type=int, help="executions of each target")
    parser.add_argument("--seconds", type=int, default=7200, help="longest time for each target")
    parser.add_argument("--input-seconds", type=int, default=5, help="longest time for one input")
    parser.add_argument("--rss-mb", type=int, default=1024, help="most memory")
    parser.add_argument("--build", type=Path, default=TOP / "build" / "fuzz", help="directory")
    args = parser.parse_args()
    try:
        for name in args.target or sorted(TARGETS):
            runs = args.runs or TARGETS[name].runs
            limits = Limits(runs, args.seconds, args.input_seconds, args.rss_mb)
            print(f"{name}: {fuzz(name, args.build.resolve(), limits)}", flush=True)
    except FuzzError as error:
        print(f"fuzz: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
