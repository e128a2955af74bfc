# SPDX-License-Identifier: Apache-2.0
"""An image, rules and files -> closures: the one engine of every question of dependencies.

Commands, `libetrace.nfsdb` and the summary ask here. Graphs and masks are made when first needed
and kept. What a dependency is: docs/dependencies.md.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from libetrace.core.errors import Error
from libetrace.depend.configuration import Config, Exclusions, Rules, exclusions_of, load
from libetrace.depend.graph import Closure, Graph
from libetrace.depend.graph_builder import TABLES, build_graph
from libetrace.depend.masks import command_mask, path_mask, row_mask
from libetrace.image.file import Image

PRODUCT_HINT = "make them: cas pp"
#: columns by table and name
GraphTables = Mapping[str, Mapping[str, Any]]


class Dependencies:
    """Walks over one image."""

    def __init__(self, image: Image, config: Config | None = None) -> None:
        self.image = image
        self._config = config
        self.graph = lru_cache(maxsize=None)(self._graph)
        self._tables = lru_cache(maxsize=None)(self._make_tables)
        self._stops = lru_cache(maxsize=64)(self._make_stops)
        self._excluded = lru_cache(maxsize=64)(self._make_excluded)
        self._named = lru_cache(maxsize=64)(self._make_named)

    @cached_property
    def config(self) -> Config:
        """The configuration beside the image."""
        return self._config or load(self.image.path.parent)

    def _graph(self, *, reverse: bool, wrapped: bool, programs: bool) -> Graph:
        if wrapped and "wrappers" not in self.image.tables:
            raise Error(f"{self.image.path} holds no wrappers yet", PRODUCT_HINT)
        return Graph(self.image, reverse=reverse, tables=self._tables(wrapped, programs))

    def _make_tables(self, wrapped: bool, programs: bool) -> GraphTables:
        """Return the tables of a graph: those that are in the image where they are the same."""
        if not (wrapped or programs) and TABLES[0] in self.image.tables:
            return {name: self.image[name].columns for name in TABLES}
        return build_graph(self.image, wrapped=wrapped, programs=programs)

    # ---- what a walk does not pass ----

    @cached_property
    def modules(self) -> bytearray:
        """A byte for each row of `paths`, 1 for linked modules; Error before `cas pp`."""
        if "linked" not in self.image.tables:
            raise Error(f"{self.image.path} holds no linked modules yet", PRODUCT_HINT)
        return row_mask(self.image["paths"].n_rows, self.image["linked"]["path"])

    def _make_named(self, paths: tuple[bytes, ...]) -> bytes:
        rows = (self.image.find_path(path) for path in paths)
        return bytes(row_mask(self.image["paths"].n_rows, (row for row in rows if row >= 0)))

    def _barriers(self, rules: Rules) -> bytes | bytearray | None:
        """Return the mask of modules that a direct walk does not leave."""
        if not rules.is_direct:
            return None
        return self.modules if rules.modules is None else self._named(rules.modules)

    def _make_stops(self, files: tuple[bytes, ...], rules: Rules) -> bytes | None:
        masks: list[bytes | bytearray] = [path_mask(self.image, files)] if files else []
        if rules.exclude_files:
            masks.append(path_mask(self.image, rules.exclude_files, negate=rules.negate))
        if rules.exclude_paths:
            masks.append(self._named(rules.exclude_paths))
        return _any(masks)

    def _make_excluded(self, commands: tuple[bytes, ...], rules: Rules) -> bytes | None:
        masks = [command_mask(self.image, commands)] if commands else []
        if rules.exclude_commands or rules.command_numbers:
            own = rules.exclude_commands, rules.command_numbers
            masks.append(command_mask(self.image, *own, negate=rules.negate))
        return _any(masks)

    def is_left_out(self, path: int, rules: Rules) -> bool:
        """Return whether the user's own patterns exclude a target."""
        stops = self._stops((), rules)
        return stops is not None and bool(stops[path])

    # ---- walks ----

    def closure(
        self,
        paths: Iterable[int],
        rules: Rules,
        left_out: Exclusions,
        *,
        reverse: bool = False,
        without: bytes | None = None,
        nearest: bool = False,
    ) -> Closure:
        """Return the closure of rows of `paths` for which the configuration says the same.

        `without` has a byte for each execution, not 0 for those that do not count either. For
        `nearest` see Graph.closure.
        """
        graph = self.graph(reverse=reverse, wrapped=rules.is_wrapped, programs=rules.all_programs)
        excluded = (self._excluded(left_out.commands, rules), without)
        pipes = left_out.pipes if rules.pipes is None else rules.pipes
        return graph.closure(
            paths,
            stops=self._stops(left_out.files, rules),
            modules=self._barriers(rules),
            excluded=_any([mask for mask in excluded if mask is not None]),
            ordered=rules.is_ordered,
            pipes=pipes is not False,
            nearest=nearest,
        )

    def chain(
        self,
        path: int,
        goal: int,
        rules: Rules,
        left_out: Exclusions,
        *,
        without: bytes | None = None,
    ) -> Sequence[tuple[Any, ...]]:
        """Return the steps through which a path depends on a goal, rows of `paths`; () for none.

        The shortest chain, unless something in it happened too late: then the one that goes on
        latest. `without`: see `closure`.
        """
        found = self.closure([path], rules, left_out, without=without)
        if goal not in found:
            return ()
        nearest = self.closure([path], rules, left_out, without=without, nearest=True)
        chain = nearest.chain(goal)
        return chain if nearest.is_in_time(chain) else found.chain(goal)

    def closures(
        self, paths: Sequence[int], rules: Rules, *, reverse: bool = False
    ) -> list[Closure]:
        """Return closures that together are those of all paths; excluded ones are left out."""
        groups: dict[Exclusions, list[int]] = {}
        for path in paths:
            if not self.is_left_out(path, rules):
                groups.setdefault(self._exclusions(path), []).append(path)
        return [
            self.closure(own, rules, left_out, reverse=reverse) for left_out, own in groups.items()
        ]

    def made_of(
        self, roots: Collection[int], rules: Rules, wanted: Collection[int] | None
    ) -> set[int]:
        """Return the rows of `paths` among `wanted` (None: all) that depend on some of `roots`.

        The configuration of each of them applies, as in a query for its dependencies.
        """
        kept = [path for path in roots if not self.is_left_out(path, rules)]
        found: set[int] = set()
        for left_out, own in self._by_exclusions(kept, rules, wanted).items():
            found.update(own.intersection(self.closure(kept, rules, left_out, reverse=True).paths))
        return found.difference(roots)

    def _by_exclusions(
        self, roots: Collection[int], rules: Rules, wanted: Collection[int] | None
    ) -> dict[Exclusions, set[int]]:
        """Return the files that may depend on the roots, by what the configuration leaves out."""
        if not roots:
            return {}
        groups: defaultdict[Exclusions, set[int]] = defaultdict(set)
        for path in self.closure(roots, rules, Exclusions(), reverse=True).paths:
            if wanted is None or path in wanted:
                groups[self._exclusions(path)].add(path)
        return groups

    def _exclusions(self, path: int) -> Exclusions:
        return exclusions_of(self.config, self.image.path_string(path))


def _any(masks: Sequence[bytes | bytearray]) -> bytes | None:
    """Return a mask of what some masks hold; None without any."""
    if len(masks) < 2:
        return bytes(masks[0]) if masks else None
    found = 0
    for mask in masks:
        found |= int.from_bytes(mask, "little")
    return found.to_bytes(len(masks[0]), "little")


def join(closures: Iterable[Closure], roots: Iterable[int]) -> array[int]:
    """Return the sorted rows of `paths` that some closure found, without the roots."""
    found: set[int] = set()
    for closure in closures:
        found.update(closure.paths)
    return array("I", sorted(found.difference(roots)))
