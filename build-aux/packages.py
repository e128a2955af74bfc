# SPDX-License-Identifier: Apache-2.0
"""Make packages: `build-aux/packages.py source|deb [--target SUITE] [--output DIR]`.

`source` lays out the tree that packages are built from: the tracked files, the C that Cython made
(Debian's Cython is too old to make it), and what manifest.toml renders. Nothing of it is committed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from etrace.errors import EtraceError
from etrace.render import render

TOP = Path(__file__).resolve().parents[1]
HERE = TOP / "packaging"
TEMPLATES = HERE / "templates"
OS_RELEASE = Path("/etc/os-release")


def manifest(codename: str) -> dict[str, Any]:
    """Return what the templates may name, for one release of a distribution."""
    values = tomllib.loads((HERE / "manifest.toml").read_text("utf-8"))
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    targets = values.pop("targets")
    if codename not in targets:
        raise EtraceError(f"no packages for {codename!r}", f"there are {', '.join(targets)}")
    target = {"codename": codename, **targets[codename]}
    version = f"{project['version']}-{values['revision']}{target['suffix']}"
    return {**values, "project": project, "target": target, "version": version}


def this_release() -> str:
    """Return the code name of the distribution that this runs on."""
    lines = OS_RELEASE.read_text("utf-8").splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    return found.get("VERSION_CODENAME", "")


def tracked_files() -> Iterator[Path]:
    """Yield the files of the source, relative to its top."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True
    ).stdout
    yield from (Path(os.fsdecode(name)) for name in listed.split(b"\0") if name)


def copy_sources(tree: Path) -> None:
    """Copy what is tracked, with its modes."""
    for name in tracked_files():
        if (TOP / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, tree / name, follow_symlinks=False)


def translate(tree: Path) -> None:
    """Put the C of the Cython modules into `cython/translated`."""
    out = tree / "cython/translated"
    out.mkdir()
    subprocess.run(
        [sys.executable, "-m", "cython", "-3", f"--generate-shared={out / '_cyutility.c'}"],
        check=True,
    )
    command = [sys.executable, str(TOP / "build-aux/translate.py"), "--root", str(tree / "cython")]
    command += ["-X", "auto_pickle=False", "-X", "emit_code_comments=False"]
    command += ["--shared", "libetrace._cyutility", "--output", str(out)]
    sources = sorted((tree / "cython/libetrace").rglob("*.pyx"))
    subprocess.run([*command, "--depfile", str(out / "depfile"), *map(str, sources)], check=True)
    for path in (*out.glob("*.stamp"), out / "depfile"):
        path.unlink()


def render_all(tree: Path, values: dict[str, Any]) -> None:
    """Write what the manifest renders, and a script for each command."""
    for name, template in values["outputs"].items():
        write(tree / name, render(TEMPLATES / template, values))
    for name, place in values["project"]["scripts"].items():
        module, function = place.split(":")
        script = {"module": module, "function": function}
        write(tree / "debian/scripts" / name, render(TEMPLATES / "script.j2", script))


def write(path: Path, text: str) -> None:
    """Write one file; what begins with #! can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755 if text.startswith("#!") else 0o644)


def make_source(out: Path, codename: str) -> Path:
    """Lay out the source tree anew; return its folder."""
    values = manifest(codename)
    tree = out / f"etrace-{values['project']['version']}"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    copy_sources(tree)
    translate(tree)
    seal(tree, values)
    archive(tree, values)
    render_all(tree, values)
    return tree


def seal(tree: Path, values: dict[str, Any]) -> None:
    """Give all files one time, so that two builds give the same bytes."""
    moment = parsedate_to_datetime(values["changed"]).timestamp()
    for path in sorted(tree.rglob("*")):
        os.utime(path, (moment, moment), follow_symlinks=False)


def archive(tree: Path, values: dict[str, Any]) -> Path:
    """Write the upstream archive of a Debian source package beside the tree."""
    path = tree.parent / f"etrace_{values['project']['version']}.orig.tar.xz"
    subprocess.run(
        ["tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go-w",
         "-cJf", str(path), tree.name],
        cwd=tree.parent, check=True,
    )  # fmt: skip
    return path


def install_build_dependencies(tree: Path) -> None:
    """Install what the packages are built with; EtraceError tells it to who may not."""
    checked = subprocess.run(
        ["dpkg-checkbuilddeps"], cwd=tree, capture_output=True, text=True, check=False
    )
    if checked.returncode == 0:
        return
    if os.geteuid() != 0:
        missing = checked.stderr.partition("dependencies: ")[2].strip()
        raise EtraceError(f"not installed: {missing}", f"sudo apt-get build-dep {tree}")
    subprocess.run(["apt-get", "build-dep", "-qq", str(tree)], check=True)


def make_deb(out: Path, codename: str) -> list[Path]:
    """Build the Debian packages; return the files."""
    tree = make_source(out, codename)
    install_build_dependencies(tree)
    moment = int(parsedate_to_datetime(manifest(codename)["changed"]).timestamp())
    subprocess.run(
        ["dpkg-buildpackage", "-us", "-uc", "-F"],
        cwd=tree, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(moment)},
    )  # fmt: skip
    return sorted(out.glob("*.deb"))


def main(argv: list[str] | None = None) -> int:
    """Command line of `build-aux/packages.py`."""
    parser = argparse.ArgumentParser(prog="build-aux/packages.py")
    parser.add_argument("what", choices=("source", "deb"))
    parser.add_argument("--target", default=this_release(), help="code name of the distribution")
    parser.add_argument("--output", type=Path, default=TOP / "build/packages")
    args = parser.parse_args(argv)
    try:
        if args.what == "source":
            print(make_source(args.output, args.target))
        else:
            print(*make_deb(args.output, args.target), sep="\n")
    except EtraceError as error:
        print(f"packaging: {error.message}: {error.hint}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"packaging: {error.cmd[0]} failed with status {error.returncode}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
