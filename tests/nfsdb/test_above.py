# SPDX-License-Identifier: Apache-2.0
"""The database of a directory above is found, but none that somebody else put there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from etrace.errors import EtraceError
from etrace.nfsdb.above import find_above

NOBODY = 65534


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go into `build/src/deep`; return `build`, where a trace is."""
    for name in ("DB_DIR", "SUDO_UID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/")
    top = tmp_path / "build"
    (top / "src" / "deep").mkdir(parents=True)
    (top / ".nfsdb").touch()
    monkeypatch.chdir(top / "src" / "deep")
    return top


def test_the_nearest_one_above_is_found(below: Path) -> None:
    assert find_above() == Path("../..")
    (below / "src" / ".nfsdb.img").touch()
    assert find_above() == Path("..")


def test_the_working_directory_comes_first(below: Path) -> None:
    Path(".nfsdb.json").touch()
    assert find_above() is None


def test_db_dir_ends_the_search(below: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_DIR", "/nowhere")
    assert find_above() is None


def test_nothing_above_the_home_directory_is_found(
    below: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(below))
    assert find_above() == Path("../..")
    monkeypatch.setenv("HOME", str(below / "src"))
    assert find_above() is None


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_directory_that_others_can_write_to_is_refused(below: Path, mode: int) -> None:
    below.chmod(mode)
    with pytest.raises(EtraceError, match="others can write to that directory") as refused:
        find_above()
    assert refused.value.hint.endswith(f"--db {below}")


def test_one_on_the_way_ends_the_search(below: Path) -> None:
    (below / "src").chmod(0o777)
    assert find_above() is None


@pytest.mark.root
def test_a_directory_of_somebody_else_is_refused(
    below: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(below, NOBODY, NOBODY)
    with pytest.raises(EtraceError, match=f"that directory belongs to user {NOBODY}"):
        find_above()
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    assert find_above() == Path("../..")


@pytest.mark.root
@pytest.mark.parametrize("name", [".nfsdb", ".nfsdb.img", ".nfsdb.env.json", ".bas_config"])
def test_a_file_of_somebody_else_is_refused(below: Path, name: str) -> None:
    (below / name).touch()
    os.chown(below / name, NOBODY, NOBODY)
    with pytest.raises(EtraceError, match=f"{name} there belongs to user {NOBODY}"):
        find_above()


@pytest.mark.root
def test_a_link_of_somebody_else_is_refused(below: Path) -> None:
    (below / ".nfsdb.img").symlink_to("/etc/passwd")
    os.chown(below / ".nfsdb.img", NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(EtraceError, match=r"\.nfsdb\.img there belongs to user"):
        find_above()
