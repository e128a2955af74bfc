# SPDX-License-Identifier: Apache-2.0
"""What stops a release: the changelog and the versions of packages."""

from __future__ import annotations

import zipfile
from pathlib import Path

import packages
import pytest
import release_check

from etrace import __version__
from etrace.errors import EtraceError

TOP = Path(__file__).resolve().parents[2]


def test_a_dated_entry_of_the_version_is_a_release() -> None:
    page = "# Changelog\n\n## 1.2.0 - 2026-12-01\n- new\n\n## 1.1.0 - 2026-11-01\n"
    assert release_check.check_changelog(page, "1.2.0") == "the changelog has 1.2.0 - 2026-12-01"


@pytest.mark.parametrize(
    "newest", ["Unreleased", "1.1.0 - 2026-11-01", "1.2.0", "11.2.0 - 2026-12-01"]
)
def test_another_entry_is_none(newest: str) -> None:
    with pytest.raises(EtraceError, match="its newest entry is") as stopped:
        release_check.check_changelog(f"# Changelog\n\n## {newest}\n- new\n", "1.2.0")
    assert stopped.value.hint.startswith("write `## 1.2.0 - YYYY-MM-DD` above")


def test_a_rehearsal_takes_unreleased_entries() -> None:
    page = "# Changelog\n\n## Unreleased\n- new\n"
    assert "not released" in release_check.check_changelog(page, "1.2.0", unreleased=True)


def test_the_version_is_read_where_it_is_written() -> None:
    assert packages.project_version() == __version__


def test_packages_name_their_versions(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "linux_build_tracer-1.2.0-cp311.whl", "w") as wheel:
        wheel.writestr(
            "linux_build_tracer-1.2.0.dist-info/METADATA",
            "Name: linux-build-tracer\nVersion: 1.1.9\n",
        )
    (tmp_path / "PKGBUILD").write_text("pkgbase=etrace\npkgver=1.2.0\n")
    found = list(release_check.versions(tmp_path))
    assert found == [("PKGBUILD", "1.2.0"), ("linux_build_tracer-1.2.0-cp311.whl", "1.1.9")]
    with pytest.raises(EtraceError, match=r"another version than 1\.2\.0") as stopped:
        release_check.check_versions(found, "1.2.0")
    assert stopped.value.hint == "linux_build_tracer-1.2.0-cp311.whl is 1.1.9"
    with pytest.raises(EtraceError, match="another version"):
        release_check.check_versions([], "1.2.0")
    assert release_check.check_versions([("a.deb", "1.2.0-1~deb12u1")], "1.2.0")


def write_zip(folder: Path, version: str, *names: str) -> Path:
    """Write a zip of the tracer whose programs print a version."""
    path = folder / f"windows-tracer-{version}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            text = "usage: windows-tracer [-o FILE]\n\0windows-tracer 1.2.0\n\0"
            archive.writestr(f"windows-tracer-{version}/{name}", text)
    return path


PROGRAMS = ("x86_64/windows-tracer.exe", "i686/windows-tracer.exe")
PAGES = ("README.txt", "capture-windows.md", "LICENSES/Apache-2.0.txt")


def test_the_zip_for_windows_names_the_versions_of_its_programs(tmp_path: Path) -> None:
    write_zip(tmp_path, "1.3.0", *PROGRAMS)
    assert list(release_check.versions(tmp_path)) == [
        ("windows-tracer-1.3.0.zip", "1.3.0"),
        *((f"windows-tracer-1.3.0/{name}", "1.2.0") for name in PROGRAMS),
    ]


def test_the_zip_for_windows_has_programs_pages_and_licences(tmp_path: Path) -> None:
    write_zip(tmp_path, "1.2.0", *PROGRAMS, *PAGES)
    assert release_check.check_zip(tmp_path, "1.2.0").endswith("has 5 files")
    write_zip(tmp_path, "1.2.0", *PROGRAMS, *PAGES[1:])
    with pytest.raises(EtraceError, match="other files") as stopped:
        release_check.check_zip(tmp_path, "1.2.0")
    assert stopped.value.hint == "windows-tracer-1.2.0/README.txt"
