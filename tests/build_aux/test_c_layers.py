# SPDX-License-Identifier: Apache-2.0
"""Includes of the C programs go one way; what does not is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "build-aux/c_layers.py"


def check(*folder: Path) -> tuple[int, list[str]]:
    """Run the script; return its status and what it said."""
    done = subprocess.run(
        [sys.executable, SCRIPT, *folder], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr.splitlines()


def lay_out(root: Path, files: dict[str, str]) -> Path:
    """Make files that include what is given; return the top of the tree."""
    for name, included in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f'#include "{word}"\n' for word in included.split()))
    return root


def test_the_sources_keep_the_order() -> None:
    assert check() == (0, [])


def test_an_include_of_a_later_folder_is_named(tmp_path: Path) -> None:
    files = {
        "kmod/src/record/emit.c": "task/set.h state.h",
        "kmod/src/task/set.h": "",
        "kmod/src/state.h": "",
    }
    said = "c_layers.py: kmod/src/record/emit.c includes kmod/src/task/set.h, which is not below it"
    assert check(lay_out(tmp_path, files)) == (1, [said])


def test_an_include_of_another_program_is_named(tmp_path: Path) -> None:
    files = {"native/collect/main.c": "preload/ring.h", "native/preload/ring.h": ""}
    said = (
        "c_layers.py: native/collect/main.c includes native/preload/ring.h, which is not below it"
    )
    assert check(lay_out(tmp_path, files)) == (1, [said])


def test_a_circle_of_sources_and_headers_is_named(tmp_path: Path) -> None:
    files = {"task/set.c": "task/roots.h", "task/set.h": "", "task/roots.h": "task/set.h"}
    status, said = check(
        lay_out(tmp_path, {f"kmod/src/{name}": text for name, text in files.items()})
    )
    assert status == 1
    first, second = "kmod/src/task/set", "kmod/src/task/roots"
    circles = (f"{first} -> {second} -> {first}", f"{second} -> {first} -> {second}")
    assert said in [[f"c_layers.py: a circle: {circle}"] for circle in circles]


def test_a_folder_without_a_place_is_named(tmp_path: Path) -> None:
    said = ["c_layers.py: kmod/src/misc: give it a place in FOLDERS"]
    said += ["c_layers.py: native/new: give it a place in FOLDERS"]
    assert check(lay_out(tmp_path, {"kmod/src/misc/all.h": "", "native/new/main.c": ""})) == (
        1,
        said,
    )


def test_headers_from_elsewhere_are_not_looked_at(tmp_path: Path) -> None:
    assert check(lay_out(tmp_path, {"kmod/src/record/emit.c": "etrace/events.h"})) == (0, [])
