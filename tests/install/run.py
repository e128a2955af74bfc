# SPDX-License-Identifier: Apache-2.0
"""A machine installed from the packages: `-m install.run [SUITE...] [--without PACKAGE]`; root.

The packages are built in a fresh minimal root from a clean clone, put into an archive of their own,
and installed by apt into a root with systemd and the distribution's kernel, where DKMS builds the
module. That root boots, and users of every kind do there what the README says. What each step
printed is in build/install/SUITE/.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import sources
from bare.root import TOP, add_user, cache, clone, fresh_root, run, unpacked
from bare.run import Progress, take_step
from bare.step import ROOT
from install import machine
from install.steps import BUILDER, IN_MACHINE, IN_ROOT, OTHER

LOGS = TOP / "build" / "install"
SECONDS = 2400
ENDED = re.compile(r"^@begin (\d+)\n(.*?)^@end \1 (\d+) (\d+)$", re.MULTILINE | re.DOTALL)
SOURCES = "deb [trusted=yes] file:/srv/packages ./\n"
NEWER = "+newer"


def packages(suite: str) -> Path:
    """Return a folder with the packages of the last commit."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=TOP, check=True, capture_output=True, text=True
    ).stdout.strip()
    path = cache() / f"{suite}-etrace" / commit
    if not path.is_dir():
        log = LOGS / suite / "packages.log"
        with fresh_root(suite) as root, log.open("wb") as output:
            clone(root, ROOT)
            if run(root, ROOT, "cd project && make deb", output) != 0:
                sys.exit(f"install: make deb failed: {log}")
            shutil.rmtree(path.parent, ignore_errors=True)
            part = path.with_suffix(".part")
            part.mkdir(parents=True)
            for one in (root / "root/project/build/packages/deb").glob("*.deb"):
                shutil.copy(one, part)
            part.rename(path)
    return path


def offer(made: Path, root: Path, without: str) -> None:
    """Put archives of the packages and of newer ones into a root, `without` a dependency."""
    for name, suffix in (("packages", ""), ("newer", NEWER)):
        archive = root / "srv" / name
        archive.mkdir()
        for path in made.glob("*.deb"):
            rewrite(path, archive, suffix, without)
        index(archive)
    (root / "etc/apt/sources.list.d/machine.list").write_text(SOURCES)


def rewrite(path: Path, folder: Path, suffix: str, without: str) -> None:
    """Write a package with a suffix to its version, which other fields name too."""
    tree = folder / "tree"
    subprocess.run(["dpkg-deb", "-R", path, tree], check=True)
    control = tree / "DEBIAN/control"
    text = control.read_text()
    [version] = re.findall(r"^Version: (.*)$", text, re.MULTILINE)
    text = text.replace(version, version + suffix)
    if without:
        text = re.sub(rf"^(Depends:.*?) {re.escape(without)}\b[^,\n]*,?", r"\1", text, flags=re.M)
    control.write_text(text)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, folder], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    shutil.rmtree(tree)


def index(folder: Path) -> None:
    """Write the list of an archive's packages."""
    with (folder / "Packages").open("wb") as listed:
        subprocess.run(
            ["dpkg-scanpackages", "-m", "."], cwd=folder, stdout=listed, check=True,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip


def take(suite: str, logs: Path, without: str) -> list[bool]:
    """Install, boot and use a machine; return whether each step passed."""
    made = packages(suite)
    passed: list[bool] = []
    with unpacked(suite, machine.base(suite)) as root:
        for user in (BUILDER, OTHER):
            add_user(root, user)
        place = sources.fetch("bzip2", root / BUILDER.home[1:])
        subprocess.run(["chown", "-R", f"{BUILDER.number}:{BUILDER.number}", place], check=True)
        place.rename(root / BUILDER.home[1:] / "bzip2")
        offer(made, root, without)
        for i, step in enumerate(IN_ROOT):
            passed.append(take_step(suite, step, root, logs / f"root-{i}.log", Progress()))
            if not passed[-1]:
                return passed
        machine.prepare(root, IN_MACHINE)
        machine.disk(root, logs / "disk")
        said = machine.boot(root, logs, SECONDS)
    return passed + judge(suite, said, logs)


def judge(suite: str, said: str, logs: Path) -> list[bool]:
    """Report how each step in the machine ended; one that it did not come to has failed."""
    found = {
        int(number): (text, int(status), int(at))
        for number, text, status, at in ENDED.findall(said)
    }
    passed, before = [], 0
    for i, step in enumerate(IN_MACHINE):
        log = logs / f"machine-{i}.log"
        text, status, at = found.get(i, ("the machine did not end this step\n", -1, before))
        log.write_text(text)
        passed.append(step.report(f"{suite}, booted", status, log, at - before))
        before = at
    return passed


def main(words: list[str]) -> int:
    """Run each suite; the last line counts steps."""
    parser = argparse.ArgumentParser(prog="python3 -m install.run")
    parser.add_argument("suites", nargs="*", default=["bookworm"], metavar="SUITE")
    parser.add_argument(
        "--without",
        default="",
        metavar="PACKAGE",
        help="leave this dependency out of the packages: the test has to fail",
    )
    args = parser.parse_args(words)
    if os.geteuid() != 0:
        print(
            "install: only root can make a root file system: sudo make test-install",
            file=sys.stderr,
        )
        return 1
    LOGS.mkdir(parents=True, exist_ok=True)
    alone = (LOGS / "lock").open("w")
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("install: another run is at work in this tree", file=sys.stderr)
        return 1
    results: list[bool] = []
    for suite in args.suites:
        logs = LOGS / suite
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir(parents=True)
        try:
            results += take(suite, logs, args.without)
        except machine.MachineError as error:
            print(error, file=sys.stderr)
            results.append(False)
        finally:
            (logs / "disk").unlink(missing_ok=True)
    print(f"{sum(results)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
