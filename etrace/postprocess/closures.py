# SPDX-License-Identifier: Apache-2.0
"""Linked modules -> what each depends on, directly and over everything: `cas cache`.

Modules are taken once, however often they were linked; those for which the configuration says the
same share one graph and its masks. Reads `linked` and what libetrace.depend.graph reads; source:
seed 001, docs/dependencies.md.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from libetrace.depend.graph import Graph, GraphError
from libetrace.image.file import Image, NewColumn, NewTable

from etrace.errors import EtraceError
from etrace.figures import count
from etrace.postprocess.config import Config
from etrace.postprocess.exclusions import Exclusions, exclusions_of
from etrace.postprocess.masks import command_mask, path_mask
from etrace.spec.database import PRODUCTS

if TYPE_CHECKING:
    from etrace.postprocess.run import Work

#: sorted closures of some modules: paths[start[i]:start[i + 1]]
Lists: TypeAlias = "dict[int, array[int]]"


def build_graph(
    image: Image, *, reverse: bool = False, wrapped: bool = False, programs: bool = False
) -> Graph:
    """Return the graph of an image; EtraceError when it is damaged."""
    try:
        return Graph(image, reverse=reverse, wrapped=wrapped, programs=programs)
    except GraphError as error:
        raise EtraceError(f"{image.path}: damaged: {error}", "make it again: cas cache") from error


def module_mask(image: Image) -> bytearray:
    """Return a byte for each row of `paths`: 1 for linked modules; all 0 before `cas pp`."""
    mask = bytearray(image["paths"].n_rows)
    if "linked" in image.tables:
        for path in image["linked"]["path"]:
            if path < len(mask):
                mask[path] = 1
    return mask


def _groups(image: Image, config: Config, modules: Iterable[int]) -> dict[Exclusions, list[int]]:
    groups: defaultdict[Exclusions, list[int]] = defaultdict(list)
    for module in modules:
        groups[exclusions_of(config, image.path_string(module))].append(module)
    return groups


def _close(
    graph: Graph, image: Image, modules: Sequence[int], left_out: Exclusions, mask: bytearray | None
) -> Lists:
    start, paths = graph.closures(
        modules,
        stops=path_mask(image, left_out.files),
        modules=mask,
        excluded=command_mask(image, left_out.commands),
        pipes=left_out.pipes is not False,
    )
    return {module: paths[start[i] : start[i + 1]] for i, module in enumerate(modules)}


def close_modules(image: Image, config: Config) -> tuple[list[int], Lists, Lists]:
    """Return the linked modules (sorted rows of `paths`), their direct and their full closures."""
    mask = module_mask(image)
    modules = [path for path, is_module in enumerate(mask) if is_module]
    graph = build_graph(image)
    direct: Lists = {}
    full: Lists = {}
    for left_out, own in _groups(image, config, modules).items():
        direct |= _close(graph, image, own, left_out, mask)
        full |= _close(graph, image, own, left_out, None)
    return modules, direct, full


def _starts(modules: Iterable[int], lists: Lists) -> array[int]:
    start = array("Q", [0])
    for module in modules:
        start.append(start[-1] + len(lists[module]))
    return start


def _table(name: str, n_rows: int, columns: dict[str, array[int]]) -> NewTable:
    table = next(t for t in PRODUCTS if t.name == name)
    made = [NewColumn(c.name, c.dtype, columns[c.name], c.unit, c.meaning) for c in table.columns]
    return NewTable(name, n_rows, made)


def tables_of(modules: Sequence[int], direct: Lists, full: Lists) -> list[NewTable]:
    """Return the tables `modules`, `module_direct` and `module_full`."""
    columns = {
        "path": array("I", modules),
        "direct.start": _starts(modules, direct),
        "full.start": _starts(modules, full),
    }
    tables = [_table("modules", len(modules), columns)]
    for name, lists in (("module_direct", direct), ("module_full", full)):
        paths = array("I")
        for module in modules:
            paths.extend(lists[module])
        tables.append(_table(name, len(paths), {"path": paths}))
    return tables


class Closures:
    """The phase; `linked` must be in the image."""

    name = "closures"
    tables = ("modules", "module_direct", "module_full")
    inputs = (
        "dependency_exclude_patterns",
        "additional_module_exclude_patterns",
        "additional_module_exclude_pattern_variants",
        "exclude_command_variants",
        "module_dependencies_with_pipes",
        "module_dependencies_exclude_with_pipes",
    )
    needs = ("linked",)

    def run(self, work: Work) -> list[NewTable]:
        """Make the closures of all linked modules."""
        if "linked" not in work.image.tables:
            raise EtraceError(f"{work.image.path} holds no linked modules yet", "find them: cas pp")
        modules, direct, full = close_modules(work.image, work.config)
        work.progress(self.name, len(modules), len(modules))
        return tables_of(modules, direct, full)

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Say how much was found."""
        n_rows = {table.name: table.n_rows for table in tables}
        files = count(n_rows["module_full"], "file")
        return f"dependencies of {count(n_rows['modules'], 'module')}: {files}"


PHASE = Closures()
