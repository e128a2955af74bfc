# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""An open database: `libetrace.nfsdb`.

Everything is read from the mapped columns when it is asked for. An open database never changes:
threads may share it, and so may processes that are forked when it is open.
"""
cimport cython

from libetrace.image.mapped cimport NONE, Mapped, Span
from libetrace.depend.dependent cimport Dependent
from libetrace.db.descendants cimport descent_rows, find_open
from libetrace.db.execution cimport make_execution
from libetrace.db.open_file cimport make_open
from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.image.schema cimport EXISTS, TYPE, TYPE_REG

from libetrace.image import file as images
from libetrace.select.commands import match_rows
from libetrace.core.errors import Error, NotFoundError
from libetrace.db.filemap import FileMap
from libetrace.select.filters import (
    execution_groups, filter_executions, filter_opens, filter_paths, open_groups,
)
from libetrace.image.freshness import is_same
from libetrace.core.texts import encode_path

cdef extern from *:
    const char *ETRACE_VERSION  # of Meson, which has it from etrace/__init__.py

__version__ = ETRACE_VERSION.decode()
HINT = "make it again: cas cache"

CLONE_THREAD = 0x10000


cdef enum Kind:
    EXECUTIONS
    OPENS
    PATHS


@cython.final
cdef class Rows:
    """Iterates over rows of one table; `len()` says how many there are in all."""
    cdef Mapped columns
    cdef object rows  # range or array of rows
    cdef Kind kind
    cdef u64 at
    cdef u64 n

    def __len__(self):
        return self.n

    def __length_hint__(self):
        return self.n - self.at

    def __iter__(self):
        return self

    def __next__(self):
        if self.at >= self.n:
            raise StopIteration
        cdef u64 row = self.rows[self.at]
        self.at += 1
        if self.kind == EXECUTIONS:
            return make_execution(self.columns, row)
        if self.kind == OPENS:
            return make_open(self.columns, row)
        return self.columns.decode_path(row)


cdef Rows iterate(Mapped columns, rows, Kind kind):
    cdef Rows out = Rows.__new__(Rows)
    out.columns = columns
    out.rows = rows
    out.kind = kind
    out.n = len(rows)
    return out


# Refuses an image that is older than the JSON beside it: `X.img` is made of `X.json`.
def check_sources(image):
    stem = image.path.name.removesuffix(".img")
    if stem == image.path.name or not image.path.with_name(f"{stem}.json").exists():
        return
    for kind, suffix in (("json", ".json"), ("env", ".env.json"), ("mounts", ".mounts.json")):
        source = image.path.with_name(stem + suffix)
        try:
            is_fresh = is_same(source, image.attributes["sources"][kind])
        except (KeyError, TypeError, AttributeError):
            is_fresh = False  # made by something else, or of something else
        if not is_fresh:
            raise Error(f"{image.path} was not made of the {source.name} beside it", HINT)


cdef class Database(Dependent):
    """A database of executions, ordered by (upid, index); empty until `load()`."""

    # ---- opening ----

    def load(self, cache_filename, debug=False, quiet=True, mp_safe=True, no_map_memory=False):
        """Open an image (`.nfsdb.img`); True, or `libetrace.error` that says what to do.

        An open database is read-only and may always be shared by threads and forked processes, so
        `mp_safe` changes nothing; `debug` and `quiet` neither: a library prints nothing.
        `no_map_memory` reads the file instead of mapping it.
        """
        if self.image is not None:
            raise Error("the database is loaded already", "make another one: libetrace.nfsdb()")
        try:
            image = images.open_image(cache_filename, is_mapped=not no_map_memory)
        except OSError as error:
            raise Error(f"{cache_filename}: {error.strerror}", "make it: cas cache") from error
        check_sources(image)
        self.bind(image)
        return True

    @classmethod
    def from_image(cls, image):
        """Return the database of an open `libetrace.image.file.Image`."""
        cdef Database out = cls()
        out.bind(image)
        return out

    @property
    def tables(self):
        """The tables of the image by name: columns with the buffer protocol, and Arrow export."""
        self.check()
        return self.image.tables

    @property
    def source_root(self):
        """Directory where the build was started."""
        self.check()
        return str(self.image.attributes.get("source_root", ""))

    @property
    def dbversion(self):
        """What `cas cache --set-version` says."""
        self.check()
        return str(self.image.attributes.get("version", ""))

    @property
    def filemap(self):
        """Mapping of each opened path to its opens."""
        self.check()
        return FileMap(self)

    # ---- rows to objects ----

    cdef object execution(self, s64 row):
        if not 0 <= row < <s64>self.n_executions:
            raise self.broken("execution", row, row)
        return make_execution(self, row)

    cdef object open(self, u64 row):
        if row >= self.n_opens:
            raise self.broken("open", row, row)
        return make_open(self, row)

    # ---- executions ----

    def __len__(self):
        return self.n_executions

    def __bool__(self):
        return self.image is not None

    def __iter__(self):
        self.check()
        return iterate(self, range(self.n_executions), EXECUTIONS)

    def iter(self):
        """Return an iterator over all executions; it has a length."""
        return iter(self)

    def __getitem__(self, key):
        """Return the execution at a position, or the executions with a name or process.

        `db[i]` is one execution; `db[pid,]`, `db[pid, index]`, `db[path of a binary]` and lists of
        these are lists. NotFoundError (a KeyError) names the missing one.
        """
        self.check()
        if isinstance(key, int):
            return self.at(key)
        if isinstance(key, slice):
            return [make_execution(self, row) for row in range(self.n_executions)[key]]
        if isinstance(key, list):
            return [entry for item in key for entry in self[item]]
        try:
            rows = self.rows_of_process(*key) if isinstance(key, tuple) else self.rows_of_binary(key)
        except OverflowError:  # no upid has more than 63 bits
            rows = ()
        if not len(rows):
            raise NotFoundError(f"no execution {key!r}")
        return [make_execution(self, row) for row in rows]

    cdef object at(self, key):
        n = <s64>self.n_executions
        row = key + n if key < 0 else key
        if not 0 <= row < n:
            raise IndexError(f"execution {key} of {n}")
        return make_execution(self, row)

    def rows_of_process(self, s64 pid, index=None):
        """Return the rows of a process, or of one of its executions."""
        if index is None:
            return range(self.find_execution(pid, 0), self.find_execution(pid + 1, 0))
        return range(self.find_execution(pid, index), self.find_execution(pid, index + 1))

    def rows_of_binary(self, path):
        """Return the rows of the executions of a binary."""
        cdef bytes text = encode_path(path)
        cdef s64 wanted = self.find_path(text, len(text))
        cdef u64 i
        if wanted == NONE:
            return []
        return [i for i in range(self.n_executions) if self.executions_binary.at[i] == wanted]

    def pids(self):
        """Return the upids of all processes, ascending."""
        cdef u64 i
        self.check()
        return [
            self.executions_upid.at[i] for i in range(self.n_executions)
            if i == 0 or self.executions_upid.at[i] != self.executions_upid.at[i - 1]
        ]

    def binary_paths(self):
        """Return the paths that were executed, each once, sorted as bytes."""
        cdef u64 i
        cdef s64 row
        cdef list out = []
        self.check()
        for row in sorted({self.executions_binary.at[i] for i in range(self.n_executions)}):
            if row != NONE:
                out.append(self.decode_path(row))
        return out

    @property
    def threads(self):
        """upids of the threads: children that clone(2) made with CLONE_THREAD."""
        cdef u64 i
        self.check()
        return [
            self.children_upid.at[i] for i in range(self.children_upid.n)
            if self.children_flags.at[i] & CLONE_THREAD
        ]

    @property
    def thread_count(self):
        """How many threads there were, those that a process begins with not counted."""
        return len(self.threads)

    def pcp_list(self):
        """Return the command patterns, by the number that `pcp_index()` gives."""
        cdef u64 i
        self.check()
        return [self.decode(self.patterns_string.at[i]) for i in range(self.patterns_string.n)]

    def precompute_command_patterns(self, patterns):
        """Match all command lines (argv joined by blanks) against patterns of fnmatch(3).

        {(upid, index): bits}: pattern i is bit 0x80 >> i % 8 of byte i / 8. None without patterns.
        """
        from libetrace.select.patterns import PatternSet

        cdef u64 i
        self.check()
        known = PatternSet(list(patterns))
        n_bytes = (len(known) + 7) // 8
        if not n_bytes:
            return None
        start, arguments = self.tables["executions"]["argv.start"], self.tables["arguments"]
        bits = match_rows(self.image, known, start, arguments["string"])
        return {
            (self.executions_upid.at[i], self.executions_index.at[i]): bytes(bits[i * n_bytes:(i + 1) * n_bytes])
            for i in range(self.n_executions)
        }

    def filtered_execs(self, exec_filter=None, **conditions):
        """Return the executions that pass a filter; names: docs/libetrace.md."""
        return list(self.filtered_execs_iter(exec_filter, **conditions))

    def filtered_execs_iter(self, exec_filter=None, **conditions):
        """Return an iterator over the executions that pass a filter; it has a length."""
        self.check()
        rows = filter_executions(self, execution_groups(exec_filter, conditions))
        return iterate(self, rows, EXECUTIONS)

    # ---- opens ----

    def opens(self):
        """Return all opens, by execution."""
        return list(self.opens_iter())

    def opens_iter(self):
        """Return an iterator over all opens; it has a length."""
        self.check()
        return iterate(self, range(self.n_opens), OPENS)

    def opens_paths(self):
        """Return all paths that were opened, each once, sorted as bytes."""
        return list(self.filemap)

    def filtered_opens(self, file_filter=None, **conditions):
        """Return the opens that pass a filter; names: docs/libetrace.md."""
        return list(self.filtered_opens_iter(file_filter, **conditions))

    def filtered_opens_iter(self, file_filter=None, **conditions):
        """Return an iterator over the opens that pass a filter; it has a length."""
        self.check()
        return iterate(self, filter_opens(self, open_groups(file_filter, conditions)), OPENS)

    def filtered_paths(self, file_filter=None, **conditions):
        """Return the paths with an open that passes a filter, each once, sorted as bytes."""
        return list(self.filtered_paths_iter(file_filter, **conditions))

    def filtered_paths_iter(self, file_filter=None, **conditions):
        """Return an iterator over the paths with an open that passes a filter; it has a length."""
        self.check()
        return iterate(self, filter_paths(self, open_groups(file_filter, conditions)), PATHS)

    # ---- one path ----

    # 1 and 2 for opens that read and write, 4 for an existing file, 8 for a regular one, 16 for an
    # original path that differs.
    cdef int facts(self, path) except -1:
        cdef bytes text = encode_path(path)
        cdef s64 row
        cdef Span span
        cdef u64 i
        cdef u64 open
        cdef u8 mode
        cdef int out = 0
        self.check()
        row = self.find_path(text, len(text))
        if row == NONE:
            raise NotFoundError(f"{path!r} was never opened")
        out |= 4 if self.paths_mode.at[row] & EXISTS else 0
        out |= 8 if self.paths_mode.at[row] & (EXISTS | TYPE) == EXISTS | TYPE_REG else 0
        self.span(&self.paths_opens_start, row, self.path_opens_open.n, &span)
        for i in range(span.first, span.last):
            open = self.path_opens_open.at[i]
            if open >= self.n_opens:
                raise self.broken("path_opens.open", i, open)
            mode = self.opens_mode.at[open]
            out |= (mode & 3 != 1) | (2 if mode & 3 else 0) | (4 if mode & EXISTS else 0)
            out |= 8 if mode & (EXISTS | TYPE) == EXISTS | TYPE_REG else 0
            out |= 16 if self.opens_original.at[open] != self.paths_string.at[row] else 0
        return out

    def path_exists(self, path):
        """Whether a path existed when the trace was parsed."""
        return self.facts(path) & 4 != 0

    def path_read(self, path):
        """Whether an open read a path."""
        return self.facts(path) & 1 != 0

    def path_write(self, path):
        """Whether an open wrote a path."""
        return self.facts(path) & 2 != 0

    def path_regular(self, path):
        """Whether a path was a regular file when the trace was parsed."""
        return self.facts(path) & 8 != 0

    def path_symlinked(self, path):
        """Whether a path was opened by another name, through a symbolic link."""
        return self.facts(path) & 16 != 0

    def symlink_paths(self, path):
        """Return the other names by which a path was opened, sorted."""
        return sorted({o.original_path for o in self.filemap[path] if o.path_modified()})

    # ---- linked modules ----

    cdef list module_rows(self):
        cdef dict rows = {}
        cdef u64 i
        self.check()
        for i in range(self.linked_path.n):
            rows.setdefault(self.linked_path.at[i], i)
        return [rows[path] for path in sorted(rows)]

    # The open that made the module of a row of `linked`, else any of its path.
    cdef s64 module_open(self, u64 row) except? -2:
        cdef s64 path = self.linked_path.at[row]
        cdef s64 open = find_open(self, descent_rows(self, self.linked_execution.at[row]), path, True)
        if open != NONE:
            return open
        return self.open_of_path(path)

    def linked_modules(self):
        """Return [(open that wrote it, type)], each module once, by path; 0 archive, 1 linked."""
        cdef s64 open
        cdef list out = []
        for row in self.module_rows():
            open = self.module_open(row)
            if open != NONE:
                out.append((self.open(open), self.linked_type.at[<u64>row]))
        return out

    def linked_module_paths(self):
        """Return [(path, type)], each module once, by path; 0 archive, 1 linked."""
        return [
            (self.decode_path(self.linked_path.at[<u64>row]), self.linked_type.at[<u64>row])
            for row in self.module_rows()
        ]

    def __repr__(self):
        name = "empty" if self.image is None else self.image.path
        return f"<nfsdb {name}: {len(self)} executions>"
