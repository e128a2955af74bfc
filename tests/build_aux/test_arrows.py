# SPDX-License-Identifier: Apache-2.0
"""build-aux/arrows.py: which imports between the packages of libetrace are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "build-aux" / "arrows.py"


def check(folder: Path | None = None) -> tuple[int, list[str]]:
    """Return the status of the script and the lines that it printed."""
    command = [sys.executable, str(SCRIPT), *([] if folder is None else [str(folder)])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Three packages; `image` reads `core`, and `xray` too."""
    files = {
        "core/types.pxd": "ctypedef int s32\n",
        "core/texts.py": "",
        "image/file.py": "from libetrace.core.texts import shown\n",
        "image/columns.pxd": "from libetrace.core.types cimport s32\n",
        "xray/log.pyx": "from libetrace.core.types cimport s32\n",
        "__init__.py": "from libetrace.image.file import Image\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_our_packages_are_clean() -> None:
    assert check() == (0, [])


def test_imports_of_lower_packages_are_clean(top: Path) -> None:
    assert check(top) == (0, [])


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("core/a.pyx", "from libetrace.image.file cimport x", "core may not import image.file"),
        ("core/a.pxd", "cimport libetrace.image.columns", "core may not import image.columns"),
        ("core/a.py", "from libetrace.image.file import x", "core may not import image.file"),
        ("core/a.py", "    import libetrace.image.file", "core may not import image.file"),
        ("core/a.py", "from libetrace.image import file", "core may not import image.file"),
        ("image/a.pyx", "from libetrace.xray.log cimport Log", "image may not import xray.log"),
        ("xray/a.pyx", "from libetrace.image.file import x", "xray may not import image.file"),
    ],
)
def test_an_import_of_a_higher_package_is_refused(
    top: Path, name: str, line: str, said: str
) -> None:
    (top / name).write_text(f"import os\n{line}\n")
    assert check(top) == (1, [f"{name}:2: {said}"])


def test_a_circle_of_declarations_is_refused(top: Path) -> None:
    (top / "core/types.pxd").write_text("from libetrace.core.other cimport x\n")
    (top / "core/other.pxd").write_text("from libetrace.core.types cimport s32\n")
    status, said = check(top)
    assert status == 1
    assert said in (
        ["a circle of imports: core.types <- core.other <- core.types"],
        ["a circle of imports: core.other <- core.types <- core.other"],
    )


def test_modules_may_use_each_other_in_their_bodies(top: Path) -> None:
    (top / "core/one.pyx").write_text("from libetrace.core.two cimport x\n")
    (top / "core/two.pyx").write_text("from libetrace.core.one cimport y\n")
    assert check(top) == (0, [])


def test_a_package_without_a_place_is_refused(top: Path) -> None:
    (top / "extra").mkdir()
    (top / "extra/one.py").touch()
    assert check(top) == (1, ["extra: no package of ORDER or BESIDE"])
