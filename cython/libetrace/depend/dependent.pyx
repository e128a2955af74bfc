# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What files and modules of a database depend on: the part of `libetrace.nfsdb` about that.

All of it asks libetrace.depend.dependencies, as `cas deps` does.
"""
from libetrace.image.mapped cimport NONE, Mapped, Span
from libetrace.core.types cimport s64, u64

from libetrace.core.errors import Error, NotFoundError
from libetrace.core.texts import list_paths

HINT = "make it again: cas cache"


cdef class Dependent(Mapped):
    """A database that says what files were made of."""

    @property
    def dependencies(self):
        """The engine: `libetrace.depend.dependencies.Dependencies`, made once."""
        from libetrace.depend.dependencies import Dependencies

        self.check()
        if self.engine is None:
            self.engine = Dependencies(self.image)
        return self.engine

    def graph(self, wrapped=False):
        """Return the `libetrace.depend.graph.Graph` of the database, made once."""
        return self.dependencies.graph(reverse=False, wrapped=bool(wrapped), programs=False)

    def fdeps(
        self, file_path, debug=False, dry_run=False, direct=False, debug_fd=False,
        negate_pattern=False, dep_graph=False, wrap_deps=False, use_pipes=None, recursive=True,
        timeout=0, exclude_files=(), exclude_patterns=(), exclude_commands=(),
        exclude_commands_index=(), all_modules=None, ordered=True,
    ):
        """Return what files were made of: (upids, paths, opens), and with `dep_graph` the graph.

        The paths are those of `cas deps --all`, sorted, the files themselves left out; the
        configuration beside the database counts. `direct` stops at linked modules, or at
        `all_modules`; `wrap_deps` takes a shell and all it started as one process; `use_pipes` None
        leaves pipes to the configuration; without `ordered` a write after the read counts too.
        `debug`, `debug_fd`, `recursive`, `timeout` change nothing. NotFoundError names a path that
        was never opened.
        """
        from libetrace.depend.configuration import Rules

        rules = Rules(
            is_direct=bool(direct), is_ordered=bool(ordered), pipes=use_pipes,
            is_wrapped=bool(wrap_deps), negate=bool(negate_pattern),
            exclude_paths=tuple(list_paths(exclude_files)),
            exclude_files=tuple(list_paths(exclude_patterns)),
            exclude_commands=tuple(list_paths(exclude_commands)),
            command_numbers=tuple(exclude_commands_index),
            modules=None if all_modules is None else tuple(list_paths(all_modules)),
        )
        engine, roots = self.dependencies, self.rows_of(file_path)
        try:
            return self.answer(engine.closures(roots, rules), roots, dry_run, dep_graph)
        except IndexError as error:
            raise Error(f"{self.image.path}: damaged: {error!r}", HINT) from error

    # Rows of `paths` of what callers name.
    cdef list rows_of(self, names):
        cdef list out = []
        self.check()
        for name in list_paths(names):
            row = self.find_path(<const char *>name, len(name))
            if row == NONE:
                shown = name.decode("utf-8", "surrogateescape")
                raise NotFoundError(f"{shown!r} was never opened")
            out.append(row)
        return out

    # The same of linked modules.
    cdef list modules_of(self, names):
        cdef list out = self.rows_of(names)
        modules = self.dependencies.modules
        for row in out:
            if not modules[row]:
                raise NotFoundError(f"{self.decode_path(row)!r} is not a linked module")
        return out

    # The tuple that `fdeps` gives.
    cdef tuple answer(self, closures, roots, is_dry, with_graph):
        from libetrace.depend.dependencies import join
        from libetrace.depend.makers import Makers

        makers = Makers(self.image, closures)
        if is_dry:
            return ([], [], [], {}) if with_graph else ([], [], [])
        out = (
            makers.upids,
            [self.decode_path(row) for row in join(closures, roots)],
            [self.open(row) for row in makers.opens],
        )
        return (*out, makers.graph()) if with_graph else out

    # Rows of `paths` that modules depend on, sorted, each once.
    cdef list rows_of_dependencies(self, names, direct):
        from libetrace.depend.configuration import Rules

        rules = Rules(is_direct=bool(direct))
        found = set()
        for module in self.modules_of(names):
            for closure in self.dependencies.closures([module], rules):
                found.update(closure.paths)
        return sorted(found)

    def mdeps(self, module_path, direct=False):
        """Return an open of each file that linked modules depend on: the first that wrote it, else
        the first. Sorted by path.
        """
        opens = [self.open_of_path(path) for path in self.rows_of_dependencies(module_path, direct)]
        return [self.open(open) for open in opens if open != NONE]

    cdef s64 open_of_path(self, u64 path) except? -2:
        cdef Span span
        cdef u64 i
        if path >= self.n_paths:
            raise self.broken("paths", path, path)
        self.span(&self.paths_opens_start, path, self.path_opens_open.n, &span)
        for i in range(span.first, span.last):
            if self.path_opens_open.at[i] >= self.n_opens:
                raise self.broken("path_opens.open", i, self.path_opens_open.at[i])
            if self.opens_mode.at[self.path_opens_open.at[i]] & 3:
                return self.path_opens_open.at[i]
        return self.path_opens_open.at[span.first] if span.first < span.last else NONE

    def mdeps_count(self, module_path, direct=False):
        """Return how many files linked modules depend on."""
        return len(self.rows_of_dependencies(module_path, direct))

    def rdeps(self, file_path, recursive=False):
        """Return the set of linked modules that depend on a file: directly, or at all."""
        from libetrace.depend.configuration import Rules

        rules, engine = Rules(is_direct=not recursive), self.dependencies
        modules = {row for row, is_module in enumerate(engine.modules) if is_module}
        found = set()
        for row in self.rows_of(file_path):
            found |= engine.made_of([row], rules, modules)
        return {self.decode_path(row) for row in found}
