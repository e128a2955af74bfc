# SPDX-License-Identifier: Apache-2.0
"""Compilations and links -> what each command was for: `compiler stage of lvm.o`, `linker of lua`.

What a compiler starts is a stage of it. A driver that only links starts the linker: it is called
after what that made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from libetrace.image.file import Image

from etrace.query.rows.classes import ARCHIVE, Classes
from etrace.query.rows.commands import Commands
from etrace.report.pack import Pack
from etrace.report.uses import Contents
from etrace.spec.database import NONE

#: tool, and what it made
Role = tuple[bytes, bytes]
COLLECT = b"collect2"  # between gcc and ld


def add_roles(pack: Pack, contents: Contents) -> None:
    """Add `command.role`."""
    commands = contents.commands
    parents = [commands.parent(number) for number in range(len(commands.rows))]
    pack.add("command.role", "I", map(pack.text, roles(commands, parents)))


def roles(commands: Commands, parents: Sequence[int]) -> list[bytes]:
    """Return the role of each command, `command` for none; `parents` by number of the command."""
    kinds = Classes(commands.image)
    if not kinds.are_known:
        return [b"command"] * len(parents)
    own = dict(_links(commands, kinds)) | dict(_compilations(commands, kinds))
    _add_drivers(commands, own, parents)
    found: list[Role | None] = []
    texts = []
    for number, parent in enumerate(parents):  # a parent starts before its children
        above = found[parent] if NONE != parent < number else None
        role = own.get(number)
        found.append(role or above)
        if role:
            texts.append(b" of ".join(role))
        elif above:
            texts.append(b"%s stage of %s" % above)
        else:
            texts.append(b"command")
    return texts


def _compilations(commands: Commands, kinds: Classes) -> Iterator[tuple[int, Role]]:
    image = commands.image
    table, objects = image["compilations"], image["compilation_objects"]["path"]
    sources = image["compilation_files"]["string"]
    for row, compilation in kinds.compilations.items():
        made = [image.path_string(objects[i]) for i in table.span("objects.start", compilation)]
        read = [image.string(sources[i]) for i in table.span("files.start", compilation)]
        if names := made or read:
            yield commands.of(row), (b"compiler", _name(names[0]))


def _links(commands: Commands, kinds: Classes) -> Iterator[tuple[int, Role]]:
    image: Image = commands.image
    linked = image["linked"]
    for row, links in kinds.links.items():
        tool = b"archiver" if linked["kind"][links[-1]] == ARCHIVE else b"linker"
        yield commands.of(row), (tool, _name(image.path_string(linked["path"][links[-1]])))


def _add_drivers(commands: Commands, own: dict[int, Role], parents: Sequence[int]) -> None:
    """Give the drivers above a linker its role: programs that compile elsewhere, and collect2."""
    drivers = {COLLECT} | {
        commands.program(commands.rows[number])
        for number, (tool, _) in own.items()
        if number != NONE and tool == b"compiler"
    }
    for number, (tool, name) in list(own.items()):
        at = NONE if number == NONE or tool != b"linker" else parents[number]
        while at != NONE and at not in own and commands.program(commands.rows[at]) in drivers:
            own[at] = (b"linker driver", name)
            at = parents[at]


def _name(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]
