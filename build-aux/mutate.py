# SPDX-License-Identifier: Apache-2.0
"""Put the faults of tests/mutations.toml into the sources, one at a time, and run the tests.

Works on a copy of the tree's last commit in build/mutations, built there once; for a fault Ninja
builds what depends on the file, and that alone is installed again. A group's tests must pass
without a fault first, and their time then says when a fault that never ends is caught. A fault
that does not fit the tree (build-aux/mutation.py) is an error, as is one that does not compile.
Prints the test that caught a fault. Exit status 1 when a fault survives.

    python build-aux/mutate.py [WORD..]   # only faults whose group or function contains a word
"""

from __future__ import annotations

import contextlib
import ctypes
import filecmp
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from mutation import MutationError, Sources

TOP = Path(__file__).resolve().parents[1]
COPY = TOP / "build" / "mutations"
BUILD = COPY / "build" / "release"
PRISTINE = COPY / "build" / "pristine"
BIN = COPY / ".venv" / "bin"
TABLE = TOP / "tests" / "mutations.toml"
FAILED, PASSED = 1, 0  # pytest's exit status
PR_SET_CHILD_SUBREAPER = 36
ENDLESS = None  # in place of an exit status
#: pytest without the minutes that hypothesis takes to shrink an example that fails
PYTEST = """
import sys
import pytest
from hypothesis import Phase, settings
settings.register_profile("unshrunk", phases=[Phase.explicit, Phase.reuse, Phase.generate])
settings.load_profile("unshrunk")
sys.exit(pytest.main(sys.argv[1:]))
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """A change of a function, and the tests of which one must fail then."""

    group: str
    function: str
    place: str
    becomes: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.function}: {self.place} -> {self.becomes or 'dropped'}"


def faults() -> Iterator[Fault]:
    """Yield the faults of the table, group by group."""
    for group in tomllib.loads(TABLE.read_text())["group"]:
        for function, place, becomes in group["faults"]:
            yield Fault(group["name"], function, place, becomes, tuple(group["tests"]))


def stale(found: list[Fault]) -> list[str]:
    """Return what is wrong with the faults that do not fit the tree."""
    sources, wrong = Sources(TOP), []
    for each in found:
        try:
            sources.changed(each.function, each.place, each.becomes)
        except MutationError as error:
            wrong.append(str(error))
    return wrong


def missing_tests(found: list[Fault]) -> list[str]:
    """Return the tests of faults that do not exist."""
    missing = set()
    for test in {test for each in found for test in each.tests}:
        file, _, name = test.partition("::")
        path, function = TOP / file, f"def {name.partition('[')[0]}("
        if not path.exists() or (name and function not in path.read_text()):
            missing.add(test)
    return sorted(missing)


def end_descendants() -> None:
    """Kill what a command has left, whatever session it is in: orphans become our children."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while pids := [int(pid) for pid in children.read_text().split()]:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)


def run(*command: str | Path, limit_s: float | None = None) -> tuple[int | None, str]:
    """Run a command in the copy, and end all that it started: (status or ENDLESS, output)."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    path = f"{BIN}:{os.environ['PATH']}"
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        with subprocess.Popen(
            command, cwd=COPY, env={**os.environ, "PATH": path}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            status: int | None = ENDLESS
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                pass
            finally:
                process.kill()
                process.wait()
                end_descendants()
        output.seek(0)
        return status, output.read()


def need(what: str, *command: str | Path) -> str:
    """Run a command that must succeed; return its output."""
    status, output = run(*command)
    if status != 0:
        sys.exit(f"mutate: {what}:\n{output[-3000:]}")
    return output


def prepare() -> str:
    """Check the tree's last commit out into the copy and build it; return the commit."""
    if not COPY.exists():
        subprocess.run(["git", "clone", "-q", TOP, COPY], check=True)
    need("git", "git", "fetch", "-q", "origin", "HEAD")
    need("git", "git", "reset", "-q", "--hard", "FETCH_HEAD")
    need("the tree itself does not build", "make", "needs-test", "build")
    shutil.rmtree(PRISTINE, ignore_errors=True)
    shutil.copytree(BUILD, PRISTINE, symlinks=True)
    return need("git", "git", "rev-parse", "--short", "HEAD").strip()


def installed_files() -> dict[Path, Path]:
    """Return where each file that Ninja makes, and that tests may use, is installed."""
    (site,) = (COPY / ".venv" / "lib").glob("python3*/site-packages")
    listing = json.loads(need("meson", BIN / "meson", "introspect", "--installed", BUILD))
    found = {}
    for made, place in ((Path(a), Path(b)) for a, b in listing.items()):
        if "site-packages" in place.parts and made.is_file():
            found[made] = site.joinpath(*place.parts[place.parts.index("site-packages") + 1 :])
        elif place.parent.name == "bin":
            found[made] = BIN / place.name
    found |= {path: site / path.relative_to(COPY) for path in COPY.glob("etrace/**/*.*")}
    return {made: place for made, place in found.items() if place.is_file()}


def install(files: dict[Path, Path]) -> None:
    """Install again what has changed; its inode too, for a program may still run."""
    for made, place in files.items():
        if not filecmp.cmp(made, place, shallow=False):
            place.unlink()
            shutil.copy2(made, place)


def restore_build() -> None:
    """Make the build what it was before a fault; times, too, by which Ninja judges."""
    for before in PRISTINE.rglob("*"):
        made = BUILD / before.relative_to(PRISTINE)
        if before.is_file() and before.stat().st_mtime_ns != made.stat().st_mtime_ns:
            shutil.copy2(before, made)


@contextlib.contextmanager
def fault_in_place(fault: Fault, sources: Sources, files: dict[Path, Path]) -> Iterator[None]:
    """Build and install the copy with a fault; repair it, so that Ninja finds nothing to do."""
    file, changed = sources.changed(fault.function, fault.place, fault.becomes)
    path = COPY / file
    before = path.stat()
    path.write_text(changed)
    targets = [made.relative_to(BUILD) for made in files if made.is_relative_to(BUILD)]
    try:
        need(f"{fault} does not build", BIN / "ninja", "-C", BUILD, *targets)
        install(files)
        yield
    finally:  # the text last: when it is not repaired, the next run builds the file again
        restore_build()
        path.write_text(sources.texts[file])
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        install(files)


def pytest(tests: tuple[str, ...], limit_s: float | None = None) -> tuple[int | None, str]:
    """Run tests in their order until the first failure."""
    return run(BIN / "python", "-P", "-c", PYTEST, "-q", "-x", *tests, limit_s=limit_s)


def limit_of(tests: tuple[str, ...]) -> float:
    """Run tests without a fault; return how many seconds they may take with one."""
    start = time.monotonic()
    status, output = pytest(tests)
    if status != PASSED:
        sys.exit(f"mutate: {' '.join(tests)} fail without a fault:\n{output[-3000:]}")
    return 30 + 5 * (time.monotonic() - start)


def outcome(
    fault: Fault, sources: Sources, files: dict[Path, Path], limit_s: float
) -> tuple[str, str]:
    """Return what the tests made of a fault: caught, endless (caught too) or SURVIVED; by which."""
    with fault_in_place(fault, sources, files):
        status, output = pytest(fault.tests, limit_s)
    if status is ENDLESS:
        return "endless", ""
    if status not in {FAILED, PASSED} and "Interrupted" not in output:
        sys.exit(f"mutate: {fault}: pytest ended with {status}: {output[-3000:]}")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.M)
    return "SURVIVED" if status == PASSED else "caught", failed[1] if failed else ""


def main(words: list[str]) -> int:
    """Try the faults that contain one of some words."""
    found = [f for f in faults() if not words or any(w in f.group or w in str(f) for w in words)]
    if wrong := stale(found) + [f"{test}: does not exist" for test in missing_tests(found)]:
        sys.exit("mutate: update tests/mutations.toml:\n" + "\n".join(wrong))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # repairs the copy, too
    commit = prepare()
    sources, files = Sources(COPY), installed_files()
    survived, begun = 0, time.monotonic()
    for tests, group in groupby(found, lambda fault: fault.tests):
        limit_s = limit_of(tests)
        for fault in group:
            state, test = outcome(fault, sources, files, limit_s)
            survived += state == "SURVIVED"
            print(f"{state:8} {time.monotonic() - begun:5.0f} s  {fault}  {test}", flush=True)
    print(f"{len(found) - survived} of {len(found)} faults were caught ({commit})")
    return 1 if survived else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
