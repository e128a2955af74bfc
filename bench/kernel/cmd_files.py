# SPDX-License-Identifier: Apache-2.0
"""The files that the `.cmd` files of a built kernel name, a path a line: what kbuild itself knows.

    python bench/kernel/cmd_files.py LINUX > cmd.list
    cas export sbom vmlinux arch/x86/boot/bzImage --compare cmd.list

kbuild writes `.NAME.cmd` beside each target (scripts/Kbuild.include): `source_` and `deps_` have
what the compiler said it read. tools/ runs make in directories of its own and writes plain rules;
its names are relative to one of these.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

TARGET = re.compile(r"^(?:savedcmd|cmd)_(\S+) :=", re.MULTILINE)
SOURCE = re.compile(r"^source_\S+ := (.*)$", re.MULTILINE)
DEPENDENCIES = re.compile(r"^deps_\S+ := \\\n((?:.*\\\n)*.*)", re.MULTILINE)
RULE = re.compile(r"^\S+: ((?:.*\\\n)*.*)", re.MULTILINE)
#: include/config/X is there only when X is set
WILDCARD = re.compile(r"\$\(wildcard [^)]*\)")


def names(text: str, *, is_of_tools: bool) -> Iterator[str]:
    """Yield the names in a `.cmd` file."""
    yield from TARGET.findall(text)
    lists = [*SOURCE.findall(text), *DEPENDENCIES.findall(text)]
    if is_of_tools:
        lists += RULE.findall(text)
    for each in lists:
        words = WILDCARD.sub("", each).replace("\\\n", " ").split()
        yield from (word for word in words if "$" not in word and word != ":=")


def placed(top: Path, folder: Path, name: str) -> Path:
    """Return where a name leads: from the tree, a directory above, or tools/."""
    above = [each for each in (folder, *folder.parents) if each.is_relative_to(top)]
    for base in (top, *above):
        if os.path.lexists(base / name):
            return base / name
    near = sorted((*(top / "tools/lib").glob(f"*/{name}"), *(top / "tools/build").glob(name)))
    return near[0] if near else top / name


def main() -> None:
    """Print the names, sorted."""
    top = Path(sys.argv[1]).resolve()
    found = set()
    for file in top.rglob(".*.cmd"):
        text = file.read_text("utf-8", "surrogateescape")
        is_of_tools = file.is_relative_to(top / "tools")
        for name in names(text, is_of_tools=is_of_tools):
            found.add(os.path.normpath(placed(top, file.parent, name)))
    print("\n".join(sorted(found)))


if __name__ == "__main__":
    main()
