# SPDX-License-Identifier: Apache-2.0
"""How two builds are said to differ."""

from __future__ import annotations

import io
import os
import re
import tarfile
from pathlib import Path

import reproducible
from backends import BPF

TOP = Path(__file__).resolve().parents[2]


def _archive(path: Path, mode: int, *names: str) -> Path:
    with tarfile.open(path, "w:xz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.mode, member.size = mode, 1
            archive.addfile(member, io.BytesIO(b"x"))
    return path


def test_equal_builds_have_no_differences(tmp_path: Path) -> None:
    one = _archive(tmp_path / "a.tar.xz", 0o644, "file")
    other = _archive(tmp_path / "b.tar.xz", 0o644, "file")
    assert list(reproducible.differences({"p.tar.xz": one}, {"p.tar.xz": other})) == []


def test_members_that_differ_are_named(tmp_path: Path) -> None:
    one = _archive(tmp_path / "a.tar.xz", 0o644, "file", "extra")
    other = _archive(tmp_path / "b.tar.xz", 0o600, "file")
    reported = list(
        reproducible.differences({"p.tar.xz": one}, {"p.tar.xz": other, "q.deb": other})
    )
    assert reported[:2] == ["q.deb: only one of the builds made it", "p.tar.xz: differs"]
    assert [line.split(":")[0].strip() for line in reported[2:]] == ["extra", "file"]
    assert "file: 644 " in reported[3]
    assert "and 600 " in reported[3]


def test_the_two_builds_see_nothing_in_common() -> None:
    one, other = reproducible.both()
    assert one.umask != other.umask
    assert one.variables.keys() == other.variables.keys()
    assert not set(one.variables.items()) & set(other.variables.items())


def test_debug_information_of_bpf_programs_names_no_folder_of_the_build() -> None:
    content = BPF.path().read_bytes()
    names = re.findall(rb"[!-~]*native/bpf/kernel/path\.h", content)
    assert names
    assert all(name.startswith(b"./../") for name in names)
    assert os.fsencode(TOP) not in content


def test_packages_are_compared_wherever_their_builder_puts_them(tmp_path: Path) -> None:
    (tmp_path / "noarch").mkdir()
    (tmp_path / "tree").mkdir()
    for name in ("a.src.rpm", "noarch/a.noarch.rpm", "PKGBUILD", "a.log", "tree/a.tar.xz"):
        (tmp_path / name).touch()
    found = reproducible.outputs(tmp_path, "rpm")
    assert sorted(found) == ["PKGBUILD", "a.noarch.rpm"]
