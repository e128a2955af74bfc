# SPDX-License-Identifier: Apache-2.0
"""What the build made and what headers cost it: linked modules, headers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies, join
from libetrace.image.file import Image

from etrace.query.linked_modules import Module, linked_modules
from etrace.query.rows.commands import Commands
from etrace.query.rows.file_kinds import USUAL, FileKind, FileKinds
from etrace.report.pack import Pack, shown
from etrace.report.uses import Contents
from etrace.spec.database import NONE

#: the largest modules are walked from
MAX_MODULES = 100


@dataclass(frozen=True, slots=True)
class Made:
    """A linked module, its size, and how many files of each kind it is made of, of what size."""

    module: Module
    n_bytes: int  #: NONE when the file is gone
    n_files: Counter[FileKind]
    file_bytes: Counter[FileKind]
    n_gone: Counter[FileKind]  #: files whose size is not known


def sized_modules(image: Image, kinds: FileKinds) -> list[Module]:
    """Return the linked modules, the largest first."""
    return sorted(linked_modules(image), key=lambda m: (-kinds.size_of(m.path), m.path))


def usual_files(
    dependencies: Dependencies, kinds: FileKinds, rows: list[int]
) -> dict[int, FileKind]:
    """Return the files that some files are made of, with their kinds, as `cas deps` shows them."""
    closures = dependencies.closures(rows, Rules())
    kind_of = kinds.among({each for closure in closures for each in closure.executions})
    found = {path: kind_of(path) for path in join(closures, rows)}
    return {path: kind for path, kind in found.items() if kind in USUAL}


def made_of(image: Image, modules: Iterable[Module], kinds: FileKinds) -> Iterator[Made]:
    """Yield what modules are made of."""
    dependencies = Dependencies(image)
    for module in modules:
        made = Made(module, kinds.size_of(module.path), Counter(), Counter(), Counter())
        for path, kind in usual_files(dependencies, kinds, [module.path]).items():
            n_bytes = kinds.size_of(path)
            made.n_files[kind] += 1
            made.file_bytes[kind] += max(0, n_bytes)
            made.n_gone[kind] += n_bytes == NONE
        yield made


def add_modules(pack: Pack, contents: Contents) -> None:
    """Add `modules`, the largest ones."""
    image, commands, number = contents.image, contents.commands, contents.number
    pack.meta["modules"] = []
    if "linked" in image.tables:
        kinds = contents.uses.kinds
        found = made_of(image, sized_modules(image, kinds)[:MAX_MODULES], kinds)
        pack.meta["modules"] = [_describe_module(commands, number, made) for made in found]


def _describe_module(commands: Commands, number: dict[int, int], made: Made) -> dict[str, Any]:
    module = made.module
    return {
        "path": shown(commands.image.path_string(module.path)),
        "file": number.get(module.path, -1),
        "kind": module.kind_name,
        "bytes": made.n_bytes,
        "commands": [commands.of(row) for row in module.executions],
        "made_of": [
            [kind.value, n, made.file_bytes[kind], made.n_gone[kind]]
            for kind, n in made.n_files.most_common()
        ],
    }


def add_headers(pack: Pack, contents: Contents) -> None:
    """Add `header.*`."""
    image, number, found = contents.image, contents.number, contents.build.includes
    if found is None:
        return
    headers = found.headers
    pack.add("header.path", "I", (pack.text(image.path_string(h.path)) for h in headers))
    pack.add("header.file", "i", (number.get(h.path, -1) for h in headers))
    pack.add("header.opens", "I", (h.n_opens for h in headers))
    pack.add("header.compilations", "I", (h.n_compilations for h in headers))
    pack.add("header.bytes", "d", (h.read_bytes for h in headers))
    pack.add("header.share", "d", (h.share for h in headers))
    fit = found.fit
    pack.add("header.ns", "d", (h.read_bytes * fit.ns_a_byte if fit else -1 for h in headers))
    pack.add("header.error", "d", (h.read_bytes * fit.error if fit else -1 for h in headers))
