# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The compilation of one execution: a row of the table `compilations`; values are made on demand.

Meaning of the columns: docs/compilations.md.
"""
cimport cython

from libetrace.image.mapped cimport NONE, Span
from libetrace.db.descendants cimport descent_rows, find_open
from libetrace.db.open_file cimport compare, make_open
from libetrace.core.types cimport s64

from libetrace.db.values import Definition


# `row` is one of the table: the caller checked it.
cdef Compilation make_compilation(Mapped columns, u64 row):
    cdef Compilation out = Compilation.__new__(Compilation)
    out.columns = columns
    out.row = row
    return out


@cython.final
@cython.no_gc
cdef class Compilation:
    """The sources, options and objects of one compilation."""

    # Strings or paths of this row, by number.
    cdef list numbers(self, const U8 *start, const U4 *column):
        cdef Span span
        cdef u64 i
        self.columns.span(start, self.row, column.n, &span)
        return [column.at[i] for i in range(span.first, span.last)]

    cdef list texts(self, const U8 *start, const U4 *strings):
        return [self.columns.decode(string) for string in self.numbers(start, strings)]

    # The opens that read the files which strings name.
    cdef list opens_named(self, const U8 *start, const U4 *strings):
        paths = [self.columns.find_path_of_string(string) for string in self.numbers(start, strings)]
        return self.opens_of(paths, False)

    # The first open of each path in the execution and what descends from it.
    cdef list opens_of(self, list paths, bint is_written):
        cdef list rows = descent_rows(
            self.columns, self.columns.compilations_execution.at[self.row]
        )
        cdef list out = []
        cdef s64 row
        for path in paths:
            row = NONE if path == NONE else find_open(self.columns, rows, path, is_written)
            if row != NONE:
                out.append(make_open(self.columns, row))
        return out

    cdef list definitions(self, bint is_undef):
        cdef Mapped columns = self.columns
        cdef Span span
        cdef u64 i
        columns.span(&columns.compilations_definitions_start, self.row, columns.compilation_definitions_name.n, &span)
        return [
            Definition(
                columns.decode(columns.compilation_definitions_name.at[i]),
                columns.decode(columns.compilation_definitions_value.at[i]),
            )
            for i in range(span.first, span.last)
            if (columns.compilation_definitions_is_undef.at[i] != 0) == is_undef
        ]

    @property
    def file_paths(self):
        """Absolute paths of the sources."""
        return self.texts(&self.columns.compilations_files_start, &self.columns.compilation_files_string)

    @property
    def files(self):
        """The opens of the sources, by the execution or a descendant; a source not opened is left out."""
        return self.opens_named(&self.columns.compilations_files_start, &self.columns.compilation_files_string)

    @property
    def object_paths(self):
        """Absolute paths of its objects."""
        cdef Mapped columns = self.columns
        paths = self.numbers(&columns.compilations_objects_start, &columns.compilation_objects_path)
        return [columns.decode_path(path) for path in paths]

    @property
    def objects(self):
        """The opens that wrote the objects, by the execution or a descendant."""
        cdef Mapped columns = self.columns
        return self.opens_of(self.numbers(&columns.compilations_objects_start, &columns.compilation_objects_path), True)

    @property
    def header_paths(self):
        """Absolute paths of the files of -include."""
        return self.texts(&self.columns.compilations_headers_start, &self.columns.compilation_headers_string)

    @property
    def headers(self):
        """The opens of the files of -include, by the execution or a descendant."""
        return self.opens_named(&self.columns.compilations_headers_start, &self.columns.compilation_headers_string)

    @property
    def ipaths(self):
        """Directories where the compiler searched headers, in that order."""
        return self.texts(&self.columns.compilations_includes_start, &self.columns.compilation_includes_string)

    @property
    def type(self):
        """1 for C, 2 for C++, 0 for any other language."""
        return self.columns.compilations_type.at[self.row]

    @property
    def language(self):
        """`c`, `c++`, `assembler`, `rust`, `go`, `java`, .."""
        return self.columns.decode(self.columns.compilations_language.at[self.row])

    @property
    def defs(self):
        """Macros that -D defines, in order."""
        return self.definitions(False)

    @property
    def undefs(self):
        """Macros that -U undefines, in order; their value is empty."""
        return self.definitions(True)

    def is_integrated(self):
        """Whether the driver is in this process; False when it is in the parent."""
        return self.columns.compilations_is_child.at[self.row] == 0

    def json(self):
        """Return the compilation as in `.nfsdb.json`: {"f", "i", "d", "u", "h", "s", "o", "p"}."""
        return {
            "f": self.file_paths,
            "i": self.ipaths,
            "d": [{"n": d.name, "v": d.value} for d in self.defs],
            "u": [{"n": d.name, "v": d.value} for d in self.undefs],
            "h": self.header_paths,
            "s": self.type,
            "o": self.object_paths,
            "p": self.columns.compilations_is_child.at[self.row],
        }

    def __richcmp__(self, other, int operator):
        if (
            not isinstance(other, Compilation)
            or (<Compilation>other).columns is not self.columns
        ):
            return NotImplemented
        return compare(self.row, (<Compilation>other).row, operator)

    def __hash__(self):
        return hash((id(self.columns), self.row))

    def __repr__(self):
        return f"<Compilation of {' '.join(self.file_paths)}>"
