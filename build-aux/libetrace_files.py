# SPDX-License-Identifier: Apache-2.0
"""Print the files of libetrace that Meson builds or installs, sorted, one a line."""

from pathlib import Path

TOP = Path(__file__).resolve().parents[1] / "cython/libetrace"
KINDS = {".pyx", ".py", ".pyi", ".json", ".bas_config", ".typed"}

for path in sorted(TOP.rglob("*.*")):
    if path.suffix in KINDS and "__pycache__" not in path.parts:
        print(path.relative_to(TOP).as_posix())
