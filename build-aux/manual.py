# SPDX-License-Identifier: Apache-2.0
"""Write the man pages in the middle of a build: Meson runs this, and installs the folder.

The commands import compiled modules, which are in Meson's folder then. Needs Python alone, so that
no way to build etrace needs more than before.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

TOP = Path(__file__).resolve().parents[1]


class Built:
    """Finds the compiled modules where Meson makes them: all in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of libetrace is; None for one that is not compiled."""
        package, _, module = name.rpartition(".")
        file = self.folder / (module + EXTENSION_SUFFIXES[0])
        is_compiled = package.startswith("libetrace.") or module == "_cyutility"
        if not is_compiled or not file.is_file():
            return None
        return spec_from_file_location(name, file, loader=ExtensionFileLoader(name, str(file)))


def write(folder: Path, found: dict[str, str]) -> None:
    """Write the pages; none is left of a command that is no more."""
    for old in folder.glob("*/*"):
        if f"{old.parent.name}/{old.name}" not in found:
            old.unlink()
    for name, text in found.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    os.utime(folder)  # Ninja looks at the folder


def sources() -> list[str]:
    """Return the files of this tree that were imported."""
    files = {str(getattr(module, "__file__", None)) for module in sys.modules.values()}
    return sorted(file for file in files if file.startswith(f"{TOP}/") and file.endswith(".py"))


def main() -> int:
    """Command line of `build-aux/manual.py`."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--modules", type=Path, required=True, help="folder of the compiled ones")
    parser.add_argument("--collector", type=Path, required=True, help="the built etrace_cat")
    parser.add_argument("--output", type=Path, required=True, help="folder of man1 and man8")
    parser.add_argument("--depfile", type=Path, required=True)
    args = parser.parse_args()
    sys.dont_write_bytecode = True
    sys.path[:1] = [str(TOP), str(TOP / "cython")]
    sys.meta_path.insert(0, Built(args.modules.resolve()))
    from etrace.cli.manual import pages  # noqa: PLC0415  what it imports is found now

    write(args.output, pages.pages(args.collector.resolve()))
    read = " ".join(path.replace(" ", "\\ ") for path in sources())
    args.depfile.write_text(f"{args.output}: {read}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
