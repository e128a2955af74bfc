# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What files and modules of a database depend on: the part of `libetrace.nfsdb` about that.

`fdeps` walks (depend.graph); `mdeps` and `rdeps` look into the lists that `cas cache` made.
"""
from libetrace.image.mapped cimport NONE, Mapped, Span, U4, U8
from libetrace.core.types cimport s64, u64

from libetrace.core.errors import Error, NotFoundError
from libetrace.core.texts import list_paths

HINT = "make it again: cas cache"


cdef class Dependent(Mapped):
    """A database that says what files were made of."""

    def graph(self, wrapped=False):
        """Return the `libetrace.depend.graph.Graph` of the database, made once."""
        from libetrace.depend.dependencies import make_graph

        self.check()
        if self.graphs is None:
            self.graphs = {}
        if wrapped not in self.graphs:
            self.graphs[wrapped] = make_graph(self.image, wrapped)
        return self.graphs[wrapped]

    def fdeps(
        self, file_path, debug=False, dry_run=False, direct=False, debug_fd=False,
        negate_pattern=False, dep_graph=False, wrap_deps=False, use_pipes=True, recursive=True,
        timeout=0, exclude_files=(), exclude_patterns=(), exclude_commands=(),
        exclude_commands_index=(), all_modules=None, ordered=True,
    ):
        """Return what files were made of: (upids, paths, opens), and with `dep_graph` the graph.

        Paths and opens are sorted. `direct` stops at linked modules, or at
        `all_modules`; `wrap_deps` takes a shell and all it started as one process; without `ordered`
        a write after the read counts too. `debug`, `debug_fd`, `recursive`, `timeout` change
        nothing. NotFoundError names a path that was never opened.
        """
        from libetrace.depend.dependencies import Exclusions

        self.check()
        left_out = Exclusions(
            tuple(list_paths(exclude_files)), tuple(list_paths(exclude_patterns)),
            tuple(list_paths(exclude_commands)), tuple(exclude_commands_index), negate_pattern,
        )
        modules = ("linked" if all_modules is None else all_modules) if direct else None
        try:
            closure = self.close(file_path, left_out, modules, wrap_deps, ordered, use_pipes)
            return self.answer(closure, dry_run, dep_graph)
        except NotFoundError:
            raise
        except (KeyError, IndexError) as error:
            raise Error(f"{self.image.path}: damaged: {error!r}", HINT) from error

    # The closure of what callers name.
    cdef object close(self, names, left_out, modules, wrapped, ordered, pipes):
        from libetrace.depend.dependencies import find_roots, module_mask

        graph = self.graph(bool(wrapped))
        stops = left_out.stops(self.image)
        return graph.closure(
            find_roots(graph, self.image, list_paths(names), stops),
            stops=stops,
            excluded=left_out.excluded(self.image),
            modules=None if modules is None else module_mask(self.image, modules),
            ordered=ordered,
            pipes=pipes,
        )

    # The tuple that `fdeps` gives.
    cdef tuple answer(self, closure, is_dry, with_graph):
        from libetrace.depend.dependencies import describe, list_opens, list_upids

        if is_dry:
            return ([], [], [], {}) if with_graph else ([], [], [])
        out = (
            list_upids(self.image, closure),
            [self.decode_path(row) for row in closure.paths],
            [self.open(row) for row in list_opens(closure)],
        )
        return (*out, describe(self.image, closure)) if with_graph else out

    # Row in `modules` of each path that is named.
    cdef list rows_of_modules(self, paths):
        cdef u64 i
        self.check()
        if not self.full_start.n:
            raise Error(f"{self.image.path} holds no dependencies yet", "make them: cas cache")
        rows = {self.decode_path(self.module_path.at[i]): i for i in range(self.module_path.n)}
        out = []
        for name in list_paths(paths):
            text = name.decode("utf-8", "surrogateescape")
            if text not in rows:
                raise NotFoundError(f"{text!r} is no linked module")
            out.append(rows[text])
        return out

    # Rows of `paths` that modules depend on, sorted, each once.
    cdef list rows_of_dependencies(self, paths, bint direct):
        cdef const U8 *start = &self.direct_start if direct else &self.full_start
        cdef const U4 *column = &self.direct_path if direct else &self.full_path
        cdef Span span
        cdef u64 i
        cdef set rows = set()
        for module in self.rows_of_modules(paths):
            self.span(start, module, column.n, &span)
            rows.update([column.at[i] for i in range(span.first, span.last)])
        return sorted(rows)

    def mdeps(self, module_path, direct=False):
        """Return an open of each file that linked modules depend on: the first that wrote it, else
        the first. The lists are those that `cas cache` made; sorted by path.
        """
        cdef list out = []
        cdef s64 open
        for path in self.rows_of_dependencies(module_path, direct):
            open = self.open_of_path(path)
            if open != NONE:
                out.append(self.open(open))
        return out

    cdef s64 open_of_path(self, u64 path) except? -2:
        cdef Span span
        cdef u64 i
        if path >= self.n_paths:
            raise self.broken("modules", path, path)
        self.span(&self.path_opens_start, path, self.path_open.n, &span)
        for i in range(span.first, span.last):
            if self.path_open.at[i] >= self.n_opens:
                raise self.broken("path_opens.open", i, self.path_open.at[i])
            if self.open_mode.at[self.path_open.at[i]] & 3:
                return self.path_open.at[i]
        return self.path_open.at[span.first] if span.first < span.last else NONE

    def mdeps_count(self, module_path, direct=False):
        """Return how many files linked modules depend on."""
        return len(self.rows_of_dependencies(module_path, direct))

    def rdeps(self, file_path, recursive=False):
        """Return the set of linked modules that depend on a file: directly, or at all."""
        cdef const U8 *start = &self.full_start if recursive else &self.direct_start
        cdef const U4 *column = &self.full_path if recursive else &self.direct_path
        cdef Span span
        cdef u64 i
        cdef u64 module
        cdef set out = set()
        self.rows_of_modules([])
        wanted = {self.find_path(<const char *>name, len(name)) for name in list_paths(file_path)}
        if NONE in wanted:
            raise NotFoundError(f"{file_path!r} was never opened")
        for module in range(self.module_path.n):
            self.span(start, module, column.n, &span)
            for i in range(span.first, span.last):
                if column.at[i] in wanted:
                    out.add(self.decode_path(self.module_path.at[module]))
                    break
        return out

    def create_deps_cache(self, depmap, direct_depmap, deps_cache_db_filename, show_stats=False):
        """Write the image again with these dependencies of modules; True.

        Both are {module: [path or [execution, open, path], ..]}. `cas cache` makes them itself.
        """
        from libetrace.convert.create import write_module_dependencies

        self.check()
        write_module_dependencies(self.image, depmap, direct_depmap, deps_cache_db_filename)
        return True

    def load_deps(self, cache_filename, debug=False, quiet=True, mp_safe=True, no_map_memory=False):
        """Take the dependencies of modules from another image of the same database; True."""
        cdef Dependent other = type(self)()
        self.check()
        other.load(cache_filename, no_map_memory=no_map_memory)
        for table, column in (("paths", "string"), ("strings", "bytes")):
            if bytes(other.tables[table][column]) != bytes(self.tables[table][column]):
                raise Error(f"{cache_filename} is of another database", HINT)
        self.views.append(other)
        self.module_path, self.direct_start = other.module_path, other.direct_start
        self.full_start, self.direct_path = other.full_start, other.direct_path
        self.full_path = other.full_path
        return True
