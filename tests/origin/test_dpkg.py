# SPDX-License-Identifier: Apache-2.0
"""Packages of dpkg: names of its lists, diversions, links of directories, and damage."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from packageurl import PackageURL

from etrace.origin.dpkg import Dpkg
from etrace.origin.origins import Origins
from etrace.origin.package import Folder, Package, Release

STATUS = """Package: a
Status: install ok installed
Maintainer: A Person <a@example.org>
Architecture: amd64
Version: 1:2.0+b~1-3

Package: b
Status: deinstall ok config-files
Architecture: all
Version: 9
"""


def write(root: Path, name: str, text: str | bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "etc/os-release", 'ID=debian\nVERSION_ID="12"\n')
    write(tmp_path, "var/lib/dpkg/status", STATUS)
    write(tmp_path, "var/lib/dpkg/info/a.list", "/.\n/lib/x.so\n/usr/bin/a\n/usr/bin/shared\n")
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    return tmp_path


def owners(root: Path, *paths: bytes) -> tuple[dict[bytes, str], list[str]]:
    found = Origins(paths, bytes(root))
    return {path: each.purl for path, each in found.packages.items()}, found.problems


def test_a_file_is_found_by_either_name_of_a_merged_directory(root: Path) -> None:
    purl = "pkg:deb/debian/a@1:2.0%2Bb~1-3?arch=amd64&distro=debian-12"
    names = (b"/usr/lib/x.so", b"/lib/x.so", b"/usr/bin/a")
    assert owners(root, *names, b"/usr/bin/none") == (dict.fromkeys(names, purl), [])
    read = PackageURL.from_string(purl)
    assert (read.name, read.version) == ("a", "1:2.0+b~1-3")
    (root / "lib").unlink()
    assert owners(root, b"/usr/lib/x.so") == ({}, [])


def test_a_diverted_file_belongs_to_whom_its_place_belongs(root: Path) -> None:
    write(root, "var/lib/dpkg/info/c.list", "/usr/bin/shared\n")
    divert = "/usr/bin/shared\n/usr/bin/shared.distrib\nc\n"
    write(root, "var/lib/dpkg/diversions", divert)
    found, problems = owners(root, b"/usr/bin/shared", b"/usr/bin/shared.distrib")
    assert found[b"/usr/bin/shared"] == "pkg:deb/debian/c?distro=debian-12"
    assert found[b"/usr/bin/shared.distrib"].startswith("pkg:deb/debian/a@")
    assert problems == []
    write(root, "var/lib/dpkg/diversions", "/usr/bin/shared\n/usr/bin/shared.distrib\n")
    assert "its end is missing" in owners(root, b"/usr/bin/shared")[1][0]


def test_damage_is_said_and_nothing_else_is_lost(root: Path) -> None:
    write(root, "var/lib/dpkg/status", STATUS.encode() + b"\nPack\xff\0age: z\n: :\n\nVersion: 3\n")
    found, problems = owners(root, b"/usr/bin/a")
    assert found[b"/usr/bin/a"].startswith("pkg:deb/debian/a@1:2.0")
    assert [each.rpartition(": ")[2] for each in problems] == ["2 entries are damaged and left out"]
    (root / "var/lib/dpkg/status").unlink()
    found, problems = owners(root, b"/usr/bin/a")
    assert found == {b"/usr/bin/a": "pkg:deb/debian/a?distro=debian-12"}
    assert "packages have no version" in problems[0]
    (root / "var/lib/dpkg/info/a.list").unlink()
    (root / "var/lib/dpkg/info/a.list").mkdir()
    assert "a.list: cannot be read" in owners(root, b"/usr/bin/a")[1][0]


def test_names_that_are_not_utf_8_are_found(root: Path) -> None:
    write(root, "var/lib/dpkg/info/a.list", b"/usr/share/\xff\xfe\n")
    assert set(owners(root, b"/usr/share/\xff\xfe")[0]) == {b"/usr/share/\xff\xfe"}


def test_a_hundred_thousand_files_without_an_owner_cost_nothing(root: Path) -> None:
    paths = [b"/usr/share/none/%d" % n for n in range(100_000)]
    found = Origins([*paths, b"/usr/bin/a"], bytes(root))
    assert (set(found.packages), found.problems) == ({b"/usr/bin/a"}, [])


def test_it_finds_what_dpkg_itself_finds() -> None:
    names = ["/usr/include/stdio.h", "/usr/bin/dpkg-query", "/usr/bin/make"]
    found = Origins([name.encode() for name in names]).packages
    for name in names:
        by_dpkg = subprocess.run(
            ["dpkg-query", "-S", name], capture_output=True, text=True, check=True
        ).stdout.partition(":")[0]
        package = found[name.encode()]
        version = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version} ${Architecture}\n", by_dpkg],
            capture_output=True, text=True, check=True,
        ).stdout.split("\n")[0]  # fmt: skip
        assert (package.name, f"{package.version} {package.architecture}") == (by_dpkg, version)


# ---- licences


def terms(root: Path, text: str) -> tuple[str, str]:
    write(root, "usr/share/doc/a/copyright", text)
    folder = Folder(bytes(root))
    found = Dpkg(folder, Release(folder), print).terms(Package("deb", "a"))
    return found.expression, found.copyright


def test_a_licence_is_that_of_all_files(root: Path) -> None:
    head = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n"
    text = f"{head}Files: *\nCopyright: 2001 A\n 2002 B\nLicense: GPL-2+ and BSD-3-clause\n"
    expected = ("GPL-2.0-or-later AND BSD-3-clause", "2001 A\n2002 B")
    assert terms(root, text) == expected
    assert terms(root, f"{text}\nFiles: debian/*\nLicense: MIT\n") == expected


def test_of_any_other_file_the_whole_text_is_the_licence(root: Path) -> None:
    found = terms(root, "This is free.\nCopyright (C) 1999 Some One\n")
    assert found == ("LicenseRef-a-copyright", "Copyright (C) 1999 Some One")
