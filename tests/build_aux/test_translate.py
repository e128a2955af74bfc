# SPDX-License-Identifier: Apache-2.0
"""build-aux/translate.py: which Cython modules are translated again, and which stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "build-aux" / "translate.py"
MODULES = ("alone", "reads", "shown")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Three modules in a package; `reads` cimports what `shown` declares."""
    package = tmp_path / "root" / "package"
    package.mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (package / "__init__.py").touch()
    (package / "shown.pxd").write_text("cdef int shown()\n")
    (package / "shown.pyx").write_text("cdef int shown():\n    return 1\n")
    (package / "reads.pyx").write_text("from package.shown cimport shown\n\nvalue = shown()\n")
    (package / "alone.pyx").write_text("value = 1\n")
    return package


def translate(package: Path, *options: str) -> subprocess.CompletedProcess[str]:
    out = package.parents[1] / "out"
    sources = [str(package / f"{name}.pyx") for name in MODULES]
    folders = ["--root", str(package.parent), "--output", str(out), "--depfile", str(out / "d")]
    command = [sys.executable, str(SCRIPT), *folders, *options, *sources]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def made(package: Path) -> dict[str, int]:
    """Return the C files with the times at which they were made."""
    out = package.parents[1] / "out"
    return {path.name.split(".")[1]: path.stat().st_mtime_ns for path in out.glob("*.c")}


def remade(package: Path, *options: str) -> set[str]:
    """Translate again; return the modules whose C was replaced."""
    before = made(package)
    assert translate(package, *options).returncode == 0
    return {name for name, time in made(package).items() if before[name] != time}


def test_every_module_is_translated_once(package: Path) -> None:
    assert translate(package).returncode == 0
    assert sorted(made(package)) == sorted(MODULES)
    assert remade(package) == set()


def test_a_touched_source_with_the_same_content_stays(package: Path) -> None:
    translate(package)
    (package / "alone.pyx").touch()
    assert remade(package) == set()


def test_an_edited_source_is_translated_alone(package: Path) -> None:
    translate(package)
    (package / "alone.pyx").write_text("value = 2\n")
    assert remade(package) == {"alone"}


def test_an_edited_declaration_reaches_who_cimports_it(package: Path) -> None:
    translate(package)
    (package / "shown.pxd").write_text("cdef long shown()\n")
    (package / "shown.pyx").write_text("cdef long shown():\n    return 1\n")
    assert remade(package) == {"reads", "shown"}


def test_other_options_translate_every_module(package: Path) -> None:
    translate(package)
    stamps = {path: path.read_text() for path in (package.parents[1] / "out").glob("*.stamp")}
    assert translate(package, "-X", "boundscheck=False").returncode == 0
    assert all(path.read_text() != text for path, text in stamps.items())


def test_an_error_names_the_line_and_keeps_the_older_c(package: Path) -> None:
    translate(package)
    before = made(package)
    (package / "alone.pyx").write_text("cdef int value = missing\n")
    failed = translate(package)
    assert failed.returncode == 1
    assert "alone.pyx:1:17: undeclared name not builtin: missing" in failed.stderr
    assert made(package) == before
    assert translate(package).returncode == 1, "an error does not go away by itself"


def test_the_depfile_names_every_declaration(package: Path) -> None:
    translate(package)
    out = package.parents[1] / "out"
    assert (out / "d").read_text() == f"{out}/package.alone.c: {package}/shown.pxd {SCRIPT}\n"


def test_a_warning_is_an_error_where_it_is_asked_for(package: Path) -> None:
    (package / "alone.pyx").write_text(
        "# cython: wraparound=False\ndef last(list items):\n    return items[-1]\n"
    )
    allowed = translate(package)
    assert allowed.returncode == 0
    assert "negative indices" in allowed.stderr
    refused = translate(package, "--werror")
    assert refused.returncode == 1
    assert "negative indices" in refused.stderr
