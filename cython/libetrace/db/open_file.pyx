# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One opened file of one execution: a row of the table `opens`; values are made when asked for.

Meaning of the columns: docs/nfsdb-json.md, "Opened files".
"""
cimport cython
from cpython.object cimport Py_EQ, Py_GE, Py_GT, Py_LE, Py_LT, Py_NE

from libetrace.core.types cimport CHANGE_LETTERS, N_CHANGES, s64, u32
from libetrace.image.columns cimport first_of
from libetrace.image.mapped cimport NONE, Span
from libetrace.image.path_facts cimport reports_path
from libetrace.select.path_kinds cimport (
    IS_ARCHIVE, IS_BINARY, IS_COMPILED, IS_COMPILER, IS_EXECUTABLE, IS_LINKED, IS_LINKER, IS_SHARED,
    find_maker, path_kinds,
)
from libetrace.image.schema cimport (
    ACCESS, EXISTS, TYPE, TYPE_BLK, TYPE_CHR, TYPE_DIR, TYPE_FIFO, TYPE_LNK, TYPE_REG, TYPE_SOCK,
)



# What `row OP other` says.
cdef object compare(u64 row, u64 other, int operator):
    if operator == Py_EQ:
        return row == other
    if operator == Py_NE:
        return row != other
    if operator == Py_LT:
        return row < other
    if operator == Py_LE:
        return row <= other
    if operator == Py_GT:
        return row > other
    return row >= other


# `row` is one of the table: the caller checked it.
cdef Open make_open(Mapped columns, u64 row):
    cdef Open out = Open.__new__(Open)
    out.columns = columns
    out.row = row
    return out


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Open:
    """One opened file of one execution."""

    @property
    def path(self):
        """The path that was opened, resolved."""
        return self.columns.decode_path(self.columns.opens_path.at[self.row])

    @property
    def original_path(self):
        """The path as the program gave it, made absolute."""
        return self.columns.decode(self.columns.opens_original.at[self.row])

    @property
    def mode(self):
        """Mode bits 0emmmmxx: exists, type, access (0 read, 1 write, 2 both)."""
        return self.columns.opens_mode.at[self.row]

    @property
    def size(self):
        """Bytes by lstat of the original path, else the resolved one; 0 when both were gone."""
        return self.columns.opens_size.at[self.row]

    @property
    def open_timestamp(self):
        """CLOCK_MONOTONIC in ns."""
        return self.columns.opens_open_ns.at[self.row]

    @property
    def close_timestamp(self):
        """CLOCK_MONOTONIC in ns; 0 for a rename or link."""
        return self.columns.opens_close_ns.at[self.row]

    @property
    def last_timestamp(self):
        """End of its last use by any open of this execution, ns; None when it is not known."""
        cdef s64 last = self.columns.opens_until_ns.at[self.row]
        return None if last == NONE else last

    @property
    def parent(self):
        """The execution that opened it."""
        return self.columns.execution(self.columns.opens_execution.at[self.row])

    @property
    def opaque(self):
        """The execution that compiled or linked the file, None when nothing did.

        The opening execution itself or the nearest above it that names the file as its source,
        object, -include or module; else the last one of the build that made it.
        """
        cdef s64 maker = find_maker(self.columns, self.row)
        return None if maker == NONE else self.columns.execution(maker)

    @property
    def ptr(self):
        """(position of the execution in the database, of the open in the execution)."""
        cdef u32 execution = self.columns.opens_execution.at[self.row]
        cdef Span span
        self.columns.span(&self.columns.executions_opens_start, execution, self.columns.n_opens, &span)
        return execution, <s64>self.row - <s64>span.first

    # ---- access, type, state ----

    def is_read(self):
        """Whether it was opened for reading, or for both."""
        return self.columns.opens_mode.at[self.row] & ACCESS != 1

    def is_write(self):
        """Whether it was opened for writing, or for both."""
        return self.columns.opens_mode.at[self.row] & ACCESS != 0

    cdef bint has_type(self, u8 type):
        cdef u8 mode = self.columns.opens_mode.at[self.row]
        return mode & EXISTS and mode & TYPE == type

    def is_reg(self):
        """Whether it is a regular file."""
        return self.has_type(TYPE_REG)

    def is_dir(self):
        """Whether it is a directory."""
        return self.has_type(TYPE_DIR)

    def is_chr(self):
        """Whether it is a character device."""
        return self.has_type(TYPE_CHR)

    def is_block(self):
        """Whether it is a block device."""
        return self.has_type(TYPE_BLK)

    def is_symlink(self):
        """Whether the original path is a symbolic link."""
        return self.has_type(TYPE_LNK)

    def is_fifo(self):
        """Whether it is a named pipe."""
        return self.has_type(TYPE_FIFO)

    def is_socket(self):
        """Whether it is a socket."""
        return self.has_type(TYPE_SOCK)

    def exists(self):
        """Whether the file existed by one of its two names when the trace was parsed."""
        return self.columns.opens_mode.at[self.row] & EXISTS != 0

    def path_modified(self):
        """Whether the resolved path differs from the original one."""
        cdef u32 path = self.columns.opens_path.at[self.row]
        if path >= self.columns.n_paths:
            raise self.columns.broken("opens.path", self.row, path)
        return self.columns.paths_string.at[path] != self.columns.opens_original.at[self.row]

    # ---- what post-processing says of the path ----

    cdef bint is_kind(self, u16 kinds) except -1:
        cdef u32 path = self.columns.opens_path.at[self.row]
        if path >= self.columns.n_paths:
            raise self.columns.broken("opens.path", self.row, path)
        return path_kinds(self.columns).kinds[path] & kinds != 0

    def has_opaque_entry(self):
        """Whether something compiled or linked the file."""
        return find_maker(self.columns, self.row) != NONE

    def is_compiled(self):
        """Whether a compilation names the path as a source."""
        return self.is_kind(IS_COMPILED)

    def is_linked(self):
        """Whether a linker or archiver made the path."""
        return self.is_kind(IS_LINKED)

    def is_linked_static(self):
        """Whether the path is an archive of this build."""
        return self.is_kind(IS_ARCHIVE)

    def is_linked_shared(self):
        """Whether the path is a shared object of this build."""
        return self.is_kind(IS_SHARED)

    def is_linked_exe(self):
        """Whether the path is an executable that this build linked."""
        return self.is_kind(IS_EXECUTABLE)

    def is_plain(self):
        """Whether the path is neither compiled nor linked."""
        return not self.is_kind(IS_COMPILED | IS_LINKED)

    def is_binary(self):
        """Whether the path was executed."""
        return self.is_kind(IS_BINARY)

    def is_compiler(self):
        """Whether an execution of the path compiled."""
        return self.is_kind(IS_COMPILER)

    def is_linker(self):
        """Whether an execution of the path linked or archived."""
        return self.is_kind(IS_LINKER)

    @property
    def changes(self):
        """Changes of the file or its name: [(kind, time in ns, other name or None)].

        Kinds: "e" emptied or new, "r" renamed from, "l" hard link of, "s" symbolic link to, "g"
        renamed away, "f" used before `open_timestamp`.
        """
        cdef Mapped c = self.columns
        cdef u64 i = first_of(c.changes_open, self.row)
        found = []
        while i < c.changes_open.n and c.changes_open.at[i] == self.row:
            name = None if c.changes_name.at[i] == NONE else c.decode(<u64>c.changes_name.at[i])
            kind = c.changes_kind.at[i]
            letter = chr(CHANGE_LETTERS[kind - 1]) if 1 <= kind <= N_CHANGES else "?"
            found.append((letter, c.changes_time_ns.at[i], name))
            i += 1
        return found

    @property
    def uses(self):
        """Uses from an open to its last close: [(begin in ns, end in ns, access)].

        Several that cannot be distinguished are one. Empty when there was only one.
        """
        cdef Mapped c = self.columns
        cdef u64 i = first_of(c.open_uses_open, self.row)
        found = []
        while i < c.open_uses_open.n and c.open_uses_open.at[i] == self.row:
            found.append((c.open_uses_begin_ns.at[i], c.open_uses_end_ns.at[i], c.open_uses_mode.at[i]))
            i += 1
        return found

    # ---- as a value ----

    def json(self):
        """Return the open as in `.nfsdb.json`: {"p", "o", "b", "e", "l", "t", "u", "m", "s", "f", "n"}.

        "o", "l", "t", "u", "f" and "n" are there only when they add something.
        """
        out = {"p": self.path}
        if self.path_modified():
            out["o"] = self.original_path
        out["b"] = self.open_timestamp
        out["e"] = self.close_timestamp
        last = self.columns.opens_until_ns.at[self.row]
        if last > max(out["b"], out["e"]):
            out["l"] = last
        changes = self.changes
        if changes:
            out["t"] = [
                {"k": kind, "t": time} | ({} if name is None else {"n": name})
                for kind, time, name in changes
            ]
        uses = self.uses
        if uses:
            out["u"] = [{"b": begin, "e": end, "m": access} for begin, end, access in uses]
        out["m"] = self.mode
        out["s"] = self.size
        path = self.columns.opens_path.at[self.row]
        if reports_path(self.columns, self.row):
            out["f"], out["n"] = self.columns.paths_mode.at[path], self.columns.paths_size.at[path]
        return out

    def __richcmp__(self, other, int operator):
        if not isinstance(other, Open) or (<Open>other).columns is not self.columns:
            return NotImplemented
        return compare(self.row, (<Open>other).row, operator)

    def __hash__(self):
        return hash((id(self.columns), self.row))

    def __repr__(self):
        return f"<Open {self.path!r} {('r', 'w', 'rw', 'rw')[self.mode & ACCESS]}>"
