# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""`.nfsdb.json`, environment and mounts -> the columns of a database image."""
from libc.string cimport memset

from libetrace.image.column_builder cimport NONE, Draft, draft_free, draft_init, make_column
from libetrace.convert.executions cimport read_executions
from libetrace.image.row_numbers cimport settle
from libetrace.convert.json_values cimport Reading
from libetrace.core.json_scanner cimport scanner_free, scanner_init
from libetrace.core.types cimport u64
from libetrace.image.schema cimport N_COLUMNS
from libetrace.trace.source cimport Source
from libetrace.convert.side_files cimport read_environment, read_mounts


class JsonError(Exception):
    """The text is not a database; `message` has the place and the error, `byte` the offset."""

    def __init__(self, message, byte):
        super().__init__(message)
        self.message = message
        self.byte = byte


cdef str describe(const Reading *reading):
    where = f"byte {reading.scanner.at - reading.begin}"
    if reading.entry >= 0:
        where = f"entry {reading.entry}, {where}"
    if reading.key:
        where += f', in "{chr(reading.key)}"'
    if reading.inner:
        where += f', "{chr(reading.inner)}"'
    return f"{where}: {(<bytes>reading.scanner.error).decode()}"


ctypedef int (*read_text)(Reading *reading) noexcept nogil


cdef class Importer:
    """Reads the texts of one database; `columns()` ends it."""

    cdef Draft draft
    cdef bint is_settled
    cdef readonly u64 n_unknown

    def __cinit__(self):
        if draft_init(&self.draft) < 0:
            raise MemoryError

    def __dealloc__(self):
        draft_free(&self.draft)

    cdef int read(self, Source source, read_text read) except -1:
        cdef Reading reading
        cdef int status
        memset(&reading, 0, sizeof(reading))
        reading.draft = &self.draft
        reading.begin = source.data
        reading.entry = NONE
        scanner_init(&reading.scanner, source.data, source.size)
        try:
            with nogil:
                status = read(&reading)
            if status < 0:
                raise JsonError(describe(&reading), reading.scanner.at - reading.begin)
            self.n_unknown += reading.n_unknown
        finally:
            scanner_free(&reading.scanner)
        return 0

    def read_entries(self, Source source not None):
        """Read the executions; comes first. JsonError."""
        self.read(source, read_executions)

    def read_environment(self, Source source not None):
        """Read `.nfsdb.env.json`. JsonError."""
        self.read(source, read_environment)

    def read_mounts(self, Source source not None):
        """Read `.nfsdb.mounts.json`. JsonError."""
        self.read(source, read_mounts)

    @property
    def tells_last(self):
        """Whether some execution has inherited files, and its opens have ends of uses."""
        return bool(self.draft.tells_last)

    @property
    def products(self):
        """Names of the product tables that some execution says something of."""
        names = set()
        if self.draft.n_pattern_bytes > 0:
            names |= {"patterns", "pattern_bits"}
        if self.draft.has_usage:
            names.add("usage")
        if self.draft.has_uses:
            names.add("open_uses")
        if self.draft.has_wrappers:
            names.add("wrappers")
        if self.draft.has_links:
            names.add("linked")
        if self.draft.has_compilations:
            names |= {"compilations", "compilation_files", "compilation_includes",
                      "compilation_definitions", "compilation_headers", "compilation_objects"}
        return frozenset(names)

    def columns(self):
        """Return the columns of all tables, in the order of the schema; can be called once.

        Columns of products that are not in `products` are empty.
        """
        cdef int status
        cdef int i
        if self.is_settled:
            raise ValueError("the columns were taken already")
        self.is_settled = True
        with nogil:
            status = settle(&self.draft)
        if status < 0:
            raise MemoryError
        return [make_column(&self.draft.columns[i]) for i in range(N_COLUMNS)]
