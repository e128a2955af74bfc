# SPDX-License-Identifier: Apache-2.0
"""An image, rules and files -> closures: what the questions about dependencies share.

Graphs and masks are made when first needed and kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

from libetrace.depend.graph import Closure, Graph
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.postprocess.closures import build_graph, module_mask
from etrace.postprocess.config import Config, load
from etrace.postprocess.exclusions import Exclusions, exclusions_of
from etrace.postprocess.masks import command_mask, path_mask
from etrace.query.kinds import PRODUCT_HINT
from etrace.query.rules import Rules


class Dependencies:
    """Walks over one image."""

    def __init__(self, image: Image, config: Config | None = None) -> None:
        self.image = image
        self._config = config
        self.graph = lru_cache(maxsize=None)(self._graph)
        self._stops = lru_cache(maxsize=64)(self._make_stops)
        self._excluded = lru_cache(maxsize=64)(self._make_excluded)

    @cached_property
    def config(self) -> Config:
        """The configuration beside the image."""
        return self._config or load(self.image.path.parent)

    def _graph(self, *, reverse: bool, wrapped: bool, programs: bool) -> Graph:
        if wrapped and "wrappers" not in self.image.tables:
            raise EtraceError(f"{self.image.path} holds no wrappers yet", PRODUCT_HINT)
        return build_graph(self.image, reverse=reverse, wrapped=wrapped, programs=programs)

    @cached_property
    def modules(self) -> bytearray:
        """A byte for each row of `paths`, 1 for linked modules; EtraceError before `cas pp`."""
        if "linked" not in self.image.tables:
            raise EtraceError(f"{self.image.path} holds no linked modules yet", PRODUCT_HINT)
        return module_mask(self.image)

    def _make_stops(self, files: tuple[bytes, ...], own: tuple[bytes, ...], negate: bool) -> bytes:
        mask = path_mask(self.image, files)
        if own:
            wanted = path_mask(self.image, own)
            mask = bytearray(a or b != negate for a, b in zip(mask, wanted, strict=True))
        return bytes(mask)

    def _make_excluded(
        self, commands: tuple[bytes, ...], own: tuple[bytes, ...], negate: bool
    ) -> bytes | None:
        if not commands and not own:
            return None
        mask = command_mask(self.image, commands)
        if own:
            wanted = command_mask(self.image, own, negate=negate)
            mask = bytearray(a or b for a, b in zip(mask, wanted, strict=True))
        return bytes(mask)

    def closure(
        self,
        paths: Iterable[int],
        rules: Rules,
        left_out: Exclusions,
        *,
        reverse: bool = False,
        without: bytes | None = None,
    ) -> Closure:
        """Return the closure of rows of `paths` for which the configuration says the same.

        `without` has a byte for each execution, not 0 for those that do not count either.
        """
        graph = self.graph(reverse=reverse, wrapped=rules.is_wrapped, programs=rules.all_programs)
        pipes = left_out.pipes if rules.pipes is None else rules.pipes
        return graph.closure(
            paths,
            stops=self._stops(left_out.files, rules.exclude_files, rules.negate),
            modules=self.modules if rules.is_direct else None,
            excluded=_either(
                self._excluded(left_out.commands, rules.exclude_commands, rules.negate), without
            ),
            ordered=rules.is_ordered,
            pipes=pipes is not False,
        )

    def closures(
        self, paths: Sequence[int], rules: Rules, *, reverse: bool = False
    ) -> list[Closure]:
        """Return closures that together are those of all paths; excluded ones are left out."""
        groups: dict[Exclusions, list[int]] = {}
        for path in paths:
            if not self.is_left_out(path, rules):
                left_out = exclusions_of(self.config, self.image.path_string(path))
                groups.setdefault(left_out, []).append(path)
        return [
            self.closure(own, rules, left_out, reverse=reverse) for left_out, own in groups.items()
        ]

    def is_left_out(self, path: int, rules: Rules) -> bool:
        """Tell whether the user's own patterns exclude a file that he asks for."""
        return bool(rules.exclude_files) and bool(
            self._stops((), rules.exclude_files, rules.negate)[path]
        )


def _either(first: bytes | None, second: bytes | None) -> bytes | None:
    """Return a mask of what one of two excludes."""
    if first is None or second is None:
        return first or second
    return bytes(a | b for a, b in zip(first, second, strict=True))


def join(closures: Iterable[Closure], roots: Iterable[int]) -> array[int]:
    """Return the sorted rows of `paths` that some closure found, without the roots."""
    found: set[int] = set()
    for closure in closures:
        found.update(closure.paths)
    return array("I", sorted(found.difference(roots)))


class Uses:
    """Rows that a closure names -> paths and executions.

    Opens, inherited files, programs, then symbolic links: what each writes, what it reads.
    """

    def __init__(self, image: Image, graph: Graph) -> None:
        self._image = image
        self._first_inherited = graph.n_opens
        self._first_program = graph.n_opens + graph.n_inherited
        self._first_link = self._first_program + graph.n_executions
        self._links = graph.links

    def path(self, row: int) -> int:
        """Return the row of `paths` that was used."""
        if row < self._first_inherited:
            table, at = self._image["opens"], row
        elif row < self._first_program:
            table, at = self._image["inherited"], row - self._first_inherited
        elif row >= self._first_link:
            path, _, target = self._links[(row - self._first_link) // 2]
            return target if (row - self._first_link) % 2 else path
        else:
            return int(self._image["executions"]["binary"][row - self._first_program])
        return int(table["path"][at])

    def execution(self, row: int) -> int:
        """Return the row of `executions` that used it."""
        if row < self._first_inherited:
            return int(self._image["opens"]["execution"][row])
        if row < self._first_program:
            return int(self._image["inherited"]["execution"][row - self._first_inherited])
        if row >= self._first_link:
            return self._links[(row - self._first_link) // 2][1]
        return row - self._first_program
