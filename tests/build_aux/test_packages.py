# SPDX-License-Identifier: Apache-2.0
"""What the distribution packages are rendered to."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib.metadata import PathDistribution
from pathlib import Path

import packages
import pytest
from backends import need_tool

from etrace import __version__
from etrace.errors import EtraceError

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["bookworm", "trixie"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What the manifest renders for a release of Debian."""
    values = packages.manifest(request.param)
    packages.render_all(tmp_path / "debian", values, "debian")
    packages.render_all(tmp_path / "debian/common", values, "common")
    return tmp_path


def test_every_template_is_rendered_by_the_manifest() -> None:
    outputs = packages.manifest("bookworm")["outputs"].values()
    used = {template for files in outputs for template in files.values()}
    templates = TOP / "packaging/templates"
    assert used == {str(path.relative_to(templates)) for path in templates.rglob("*.j2")}


def test_the_version_is_that_of_the_project(tree: Path) -> None:
    need_tool("dpkg-parsechangelog", "dpkg-dev")
    said = subprocess.run(
        ["dpkg-parsechangelog", "-l", tree / "debian/changelog", "-S", "Version"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert re.fullmatch(rf"{re.escape(__version__)}-1~deb1[23]u1\n", said)
    assert (
        f'PACKAGE_VERSION="{__version__}"' in (tree / "debian/common/module/dkms.conf").read_text()
    )


def test_each_package_of_the_manifest_is_in_the_control_file(tree: Path) -> None:
    control = (tree / "debian/control").read_text()
    named = re.findall(r"^Package: (\S+)$", control, re.MULTILINE)
    assert named == [
        "etrace",
        "python3-libetrace",
        "etrace-dkms",
        "libgcc-input-name",
        "etrace-doc",
    ]
    assert sorted(named) == sorted(packages.manifest("bookworm")["packages"])


def test_python_dependencies_of_the_project_are_dependencies_of_the_package(tree: Path) -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=]", dependency)[0] for dependency in project["dependencies"]}
    control = (tree / "debian/control").read_text()
    assert {name for name in names if f" python3-{name},\n" not in control} == set()


def test_the_commands_start_the_python_of_the_distribution(tree: Path) -> None:
    for kind in ("rpm", "arch"):
        packages.render_all(tree / kind, {**packages.manifest("bookworm"), "sums": ["", ""]}, kind)
    for path in (tree / "debian/rules", tree / "rpm/etrace.spec", tree / "arch/PKGBUILD"):
        assert "-Dinterpreter=/usr/bin/python3 " in path.read_text()


def test_the_packages_have_the_metadata_of_the_distribution(tree: Path) -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    found = PathDistribution(tree / "debian/common/dist-info").metadata
    assert (found["Name"], found["Version"]) == (project["name"], __version__)
    assert set(project["dependencies"]) <= set(found.get_all("Requires-Dist", []))
    name = f"linux_build_tracer-{__version__}.dist-info"
    installed = (tree / "debian/etrace.install").read_text().split()
    assert f"usr/lib/python3/dist-packages/{name}" in installed
    for kind in ("rpm", "arch"):
        packages.render_all(tree / kind, {**packages.manifest("bookworm"), "sums": ["", ""]}, kind)
        [rendered] = (tree / kind).iterdir()
        assert name in rendered.read_text()


def test_rules_have_one_recipe_for_each_target(tree: Path) -> None:
    targets = re.findall(r"^(\w+):", (tree / "debian/rules").read_text(), re.MULTILINE)
    assert sorted(set(targets)) == sorted(targets)


def test_the_umask_of_the_clone_is_not_in_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, tree = tmp_path / "clone", tmp_path / "tree"
    clone.mkdir()
    for name, mode in {"program": 0o750, "text": 0o640}.items():
        (clone / name).touch()
        (clone / name).chmod(mode)
    (clone / "link").symlink_to("text")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=clone, check=True)
    monkeypatch.setattr(packages, "TOP", clone)
    packages.copy_sources(tree)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tree.iterdir()}
    assert modes == {"program": 0o755, "text": 0o644, "link": 0o644}
    assert (tree / "link").is_symlink()


def test_what_an_earlier_build_made_is_removed(tmp_path: Path) -> None:
    for name in ("etrace_0.0.9-1_amd64.deb", "etrace_0.0.9-1.dsc", "notes"):
        (tmp_path / name).touch()
    packages.clear("deb", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_the_line_that_installs_packages_is_that_of_the_readme() -> None:
    line = packages.install_line("deb", TOP / "build/packages/deb")
    readme = (TOP / "README.md").read_text()
    assert f"\nsudo {line.removeprefix('sudo ')}\n" in readme
    made, installed = packages.install_line("wheel", TOP / "build/packages/wheel").split(" && ")
    assert f"\n{made}\n{installed}\n" in readme


def test_arch_packages_are_those_of_the_manifest(tmp_path: Path) -> None:
    values = packages.manifest("bookworm")
    for name in (f"etrace_{__version__}.orig.tar.xz", f"etrace-{__version__}-common.tar.xz"):
        (tmp_path / name).write_bytes(name.encode())
    packages.arch_files(tmp_path, values)
    command = (
        'source ./PKGBUILD && declare -F && printf "%s\\n" "$pkgver" "${pkgname[@]}" "${source[@]}"'
    )
    done = subprocess.run(
        ["bash", "-euc", command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    functions = set(re.findall(r"declare -f package_(\S+)", done.stdout))
    version, *names = [line for line in done.stdout.splitlines() if "declare -f" not in line]
    assert version == __version__
    assert functions == set(names[:-2])
    assert {name.removeprefix("python3-") for name in values["packages"]} == {
        name.removeprefix("python-") for name in functions
    }
    assert all((tmp_path / name).is_file() for name in names[-2:])


def test_an_unknown_release_is_refused() -> None:
    with pytest.raises(EtraceError, match="no packages for 'sarge'") as refused:
        packages.manifest("sarge")
    assert refused.value.hint == "there are bookworm, trixie"


def test_dkms_gets_all_that_the_module_is_built_from(tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "dkms-tree", f"DEST={tmp_path / 'tree'}"], check=True, cwd=TOP)
    kmod = {str(p.relative_to(TOP / "kmod")) for p in (TOP / "kmod/src").rglob("*.[ch]")}
    laid = {str(p.relative_to(tmp_path / "tree")) for p in (tmp_path / "tree").rglob("*")}
    assert (
        kmod | {"Kbuild", "Makefile", "format/etrace_format.c", "include/etrace/events.h"} <= laid
    )


@pytest.mark.parametrize("words", [[], ["frobnicate"]])
def test_the_builder_of_the_module_prints_its_usage(tree: Path, words: list[str]) -> None:
    done = subprocess.run(
        ["sh", str(tree / "debian/common/module/etrace-module"), *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "usage: etrace-module build [RELEASE...] | etrace-module status | etrace-module remove\n"
    )
