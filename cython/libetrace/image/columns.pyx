# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""An open image, or tables that were made -> pointers to their columns.

The one place that takes addresses: every table of the schema has all of its columns, with their
dtypes, and as many elements as it has rows. That reads no column. What columns hold comes from a
file that may be damaged or hostile: one scan of the maximum of each (about 10 GB/s) makes every
later access safe. Who does not ask for it checks each number that it takes out of a column.
"""
import re
from functools import cache

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

from libetrace.image.header import BYTES, DTYPES, ImageError, has_one_more, load_schema

from libetrace.image.schema cimport (
    ADDED_STRINGS_BYTES, ADDED_STRINGS_START, ARGUMENTS_STRING, CHANGES_KIND, CHANGES_NAME,
    CHANGES_OPEN,
    CHILDREN_EXECUTION, CHILDREN_UPID,
    COMPILATIONS_DEFINITIONS_START, COMPILATIONS_EXECUTION, COMPILATIONS_FILES_START,
    COMPILATIONS_HEADERS_START, COMPILATIONS_INCLUDES_START, COMPILATIONS_IS_CHILD,
    COMPILATIONS_LANGUAGE, COMPILATIONS_OBJECTS_START, COMPILATIONS_TYPE,
    COMPILATION_DEFINITIONS_IS_UNDEF, COMPILATION_DEFINITIONS_NAME, COMPILATION_DEFINITIONS_VALUE,
    COMPILATION_FILES_STRING, COMPILATION_HEADERS_STRING, COMPILATION_INCLUDES_STRING,
    COMPILATION_OBJECTS_PATH, CPUS_CPU, ENVIRONMENT_STRING, EXECUTIONS_ARGV_START,
    EXECUTIONS_BINARY, EXECUTIONS_CHILDREN_START, EXECUTIONS_CPUS_START, EXECUTIONS_CWD,
    EXECUTIONS_INHERITED_START, EXECUTIONS_OPENS_START, EXECUTIONS_PARENT,
    EXECUTIONS_READERS_START, EXECUTIONS_UPID, EXECUTION_TARGETS_TARGET, INHERITED_DESCRIPTOR, INHERITED_EXECUTION,
    INHERITED_MODE, INHERITED_PATH, LINKED_EXECUTION, LINKED_KIND, LINKED_PATH, LINKED_TYPE,
    MOUNTS_EXECUTION, MOUNTS_KIND, MOUNTS_OK, MOUNTS_SOURCE, MOUNTS_TARGET,
    MOUNTS_TYPE, N_COLUMNS, OPENS_EXECUTION, OPENS_ORIGINAL, OPENS_PATH, OPEN_USES_MODE,
    OPEN_USES_OPEN, PATHS_OPENS_START, PATHS_STRING, PATH_OPENS_OPEN, PATTERNS_STRING,
    PATTERN_BITS_BITS, PIPE_READERS_EXECUTION,
    RESPONSE_FILES_CONTENT, RESPONSE_FILES_PATH, STRINGS_BYTES, STRINGS_START,
    TARGETS_KIND, TARGETS_NAMES_START, TARGETS_OUTER, TARGETS_TOOL, TARGET_NAMES_STRING,
    UNREAD_RESPONSE_FILES_EXECUTION, UNREAD_RESPONSE_FILES_STRING, USAGE_USER_NS,
    WRAPPERS_EXECUTION,
)

#: column -> a column of the table whose rows it numbers; NONE (-1) is allowed where it has a sign
ROWS = (
    (PATHS_STRING, STRINGS_START), (PATH_OPENS_OPEN, OPENS_PATH),
    (EXECUTIONS_PARENT, EXECUTIONS_UPID), (EXECUTIONS_BINARY, PATHS_STRING),
    (EXECUTIONS_CWD, STRINGS_START), (ARGUMENTS_STRING, STRINGS_START),
    (OPENS_PATH, PATHS_STRING), (OPENS_ORIGINAL, STRINGS_START),
    (OPENS_EXECUTION, EXECUTIONS_UPID), (CHANGES_OPEN, OPENS_PATH),
    (OPEN_USES_OPEN, OPENS_PATH),
    (CHANGES_NAME, STRINGS_START), (CHILDREN_EXECUTION, EXECUTIONS_UPID),
    (PIPE_READERS_EXECUTION, EXECUTIONS_UPID), (ENVIRONMENT_STRING, STRINGS_START),
    (MOUNTS_EXECUTION, EXECUTIONS_UPID), (MOUNTS_SOURCE, STRINGS_START),
    (MOUNTS_TARGET, STRINGS_START), (MOUNTS_TYPE, STRINGS_START),
    (INHERITED_PATH, PATHS_STRING), (INHERITED_EXECUTION, EXECUTIONS_UPID),
    (LINKED_EXECUTION, EXECUTIONS_UPID), (LINKED_PATH, PATHS_STRING),
    (COMPILATIONS_EXECUTION, EXECUTIONS_UPID), (COMPILATIONS_LANGUAGE, STRINGS_START),
    (COMPILATION_FILES_STRING, STRINGS_START), (COMPILATION_INCLUDES_STRING, STRINGS_START),
    (COMPILATION_DEFINITIONS_NAME, STRINGS_START), (COMPILATION_DEFINITIONS_VALUE, STRINGS_START),
    (COMPILATION_HEADERS_STRING, STRINGS_START), (COMPILATION_OBJECTS_PATH, PATHS_STRING),
    (WRAPPERS_EXECUTION, EXECUTIONS_UPID), (PATTERNS_STRING, STRINGS_START),
    (RESPONSE_FILES_PATH, STRINGS_START),
    (RESPONSE_FILES_CONTENT, STRINGS_START), (UNREAD_RESPONSE_FILES_EXECUTION, EXECUTIONS_UPID),
    (UNREAD_RESPONSE_FILES_STRING, STRINGS_START),
    (TARGETS_TOOL, EXECUTIONS_UPID), (TARGETS_OUTER, TARGETS_TOOL),
    (TARGET_NAMES_STRING, STRINGS_START), (EXECUTION_TARGETS_TARGET, TARGETS_TOOL),
)
#: column X.start -> a column of the table whose rows it divides
STARTS = (
    (STRINGS_START, STRINGS_BYTES), (ADDED_STRINGS_START, ADDED_STRINGS_BYTES),
    (PATHS_OPENS_START, PATH_OPENS_OPEN), (EXECUTIONS_ARGV_START, ARGUMENTS_STRING),
    (EXECUTIONS_OPENS_START, OPENS_PATH), (EXECUTIONS_CHILDREN_START, CHILDREN_UPID),
    (EXECUTIONS_READERS_START, PIPE_READERS_EXECUTION), (EXECUTIONS_CPUS_START, CPUS_CPU),
    (EXECUTIONS_INHERITED_START, INHERITED_PATH),
    (COMPILATIONS_FILES_START, COMPILATION_FILES_STRING),
    (COMPILATIONS_INCLUDES_START, COMPILATION_INCLUDES_STRING),
    (COMPILATIONS_DEFINITIONS_START, COMPILATION_DEFINITIONS_NAME),
    (COMPILATIONS_HEADERS_START, COMPILATION_HEADERS_STRING),
    (COMPILATIONS_OBJECTS_START, COMPILATION_OBJECTS_PATH),
    (TARGETS_NAMES_START, TARGET_NAMES_STRING),
)
#: column of kinds -> how many kinds there are
KINDS = (
    (CHANGES_KIND, 7), (INHERITED_DESCRIPTOR, 3), (INHERITED_MODE, 4), (LINKED_TYPE, 2), (LINKED_KIND, 4),
    (MOUNTS_KIND, 2), (MOUNTS_OK, 2), (COMPILATIONS_TYPE, 4), (COMPILATIONS_IS_CHILD, 2), (COMPILATION_DEFINITIONS_IS_UNDEF, 2),
    (TARGETS_KIND, 2), (OPEN_USES_MODE, 3),
)
#: names of languages; further compilers may add some (etrace/compilers)
LANGUAGE = rb"[\w+#.-]{0,32}"


# Whether the offsets never go down, begin at 0 and end within `limit`.
cdef bint are_offsets(const u64 *offsets, size_t n, u64 limit) noexcept nogil:
    cdef bint goes_up = n > 0 and offsets[0] == 0
    cdef size_t i
    for i in range(1, n):
        goes_up &= offsets[i] >= offsets[i - 1]
    return goes_up and offsets[n - 1] <= limit


# Whether all numbers are below the limit.
cdef bint are_rows(const u32 *rows, size_t n, u64 limit) noexcept nogil:
    cdef u32 highest = 0
    cdef size_t i
    for i in range(n):
        highest = max(highest, rows[i])
    return n == 0 or highest < limit


# The same when NONE is allowed: it becomes 0, row i becomes i + 1.
cdef bint are_rows_or_none(const u32 *rows, size_t n, u64 limit) noexcept nogil:
    cdef u32 highest = 0
    cdef size_t i
    for i in range(n):
        highest = max(highest, <u32>(rows[i] + 1))
    return n == 0 or highest <= limit


# Whether all kinds are below the limit.
cdef bint are_kinds(const u8 *kinds, size_t n, u8 limit) noexcept nogil:
    cdef u8 highest = 0
    cdef size_t i
    for i in range(n):
        highest = max(highest, kinds[i])
    return highest < limit


# Whether the columns of each table have as many elements as it has rows; offsets have one more.
cdef int check_tables(Columns columns, path) except -1:
    cdef int number
    cdef size_t n_rows = 0
    cdef size_t n
    last = None
    for number, (table, column, _) in enumerate(schema_columns()):
        if columns.data[number] == NULL or column == BYTES:
            continue
        n = columns.length[number]
        if has_one_more(column):
            if not n:
                raise ImageError(f"{path}: damaged: column {table}.{column} is empty")
            n -= 1
        if table == last and n != n_rows:
            raise ImageError(
                f"{path}: damaged: column {table}.{column} has {n} elements for {n_rows} rows")
        last, n_rows = table, n
    return 0


# How many rows the table of this column has.
cdef size_t rows_behind(Columns columns, int number) noexcept:
    cdef size_t n = columns.length[number]
    if number != STRINGS_START:
        return n
    return n - 1 + (columns.length[ADDED_STRINGS_START] - 1
                    if columns.data[ADDED_STRINGS_START] != NULL else 0)


cdef int check(Columns columns, image) except -1:
    schema = schema_columns()
    cdef int number
    cdef int of
    cdef bint is_right
    for number, of in STARTS:
        if columns.data[number] != NULL and not are_offsets(
                u64_of(columns, number), columns.length[number], columns.length[of]):
            raise wrong(image, schema[number], "offsets")
    for number, of in ROWS:
        if columns.data[number] == NULL:
            continue
        if schema[number][2] == "<i4":
            is_right = are_rows_or_none(u32_of(columns, number), columns.length[number],
                                        rows_behind(columns, of))
        else:
            is_right = are_rows(u32_of(columns, number), columns.length[number],
                                rows_behind(columns, of))
        if not is_right:
            raise wrong(image, schema[number], "row numbers")
    for number, of in KINDS:
        if columns.data[number] != NULL and not are_kinds(
                u8_of(columns, number), columns.length[number], of):
            raise wrong(image, schema[number], "kinds")
    check_languages(columns, image, schema)
    return check_lengths(columns, image, schema)


# Strings that are words: they are shown, compared and become names in other files.
cdef int check_languages(Columns columns, image, schema) except -1:
    if columns.data[COMPILATIONS_LANGUAGE] != NULL:
        for string in set(image.tables["compilations"].columns["language"]):
            if not re.fullmatch(LANGUAGE, image.string(string)):
                raise wrong(image, schema[COMPILATIONS_LANGUAGE], "languages")
    return 0


cdef int check_lengths(Columns columns, image, schema) except -1:
    cdef size_t n_executions = columns.length[EXECUTIONS_UPID]
    cdef size_t n_bits = (columns.length[PATTERNS_STRING] + 7) // 8 * n_executions
    if columns.data[WRAPPERS_EXECUTION] != NULL \
            and columns.length[WRAPPERS_EXECUTION] != n_executions:
        raise wrong(image, schema[WRAPPERS_EXECUTION], "rows")
    if columns.data[USAGE_USER_NS] != NULL and columns.length[USAGE_USER_NS] != n_executions:
        raise wrong(image, schema[USAGE_USER_NS], "rows")
    if columns.data[EXECUTION_TARGETS_TARGET] != NULL \
            and columns.length[EXECUTION_TARGETS_TARGET] != n_executions:
        raise wrong(image, schema[EXECUTION_TARGETS_TARGET], "rows")
    if columns.data[PATTERN_BITS_BITS] != NULL and columns.length[PATTERN_BITS_BITS] != n_bits:
        raise wrong(image, schema[PATTERN_BITS_BITS], "rows")
    return 0


cdef object wrong(image, name, str what):
    return ImageError(f"{image.path}: column {name[0]}.{name[1]} holds wrong {what}: damaged?")


@cache
def schema_columns():
    """Return (table, column, dtype) of every column, in the order of their numbers."""
    found = [
        (name, column, dtype)
        for name, table in load_schema().items()
        for column, (dtype, _, _) in table.columns.items()
    ]
    if len(found) != N_COLUMNS:
        raise ValueError(f"{len(found)} columns, and libetrace was built for {N_COLUMNS}")
    return found


cdef class Columns:
    """The columns of an image by number, as long as it lives.

    `tables` ({table: {column: buffer}}) stand in for those of the image. ImageError when a column is
    missing, or has another dtype or length than its table. With `is_checked` also when a row number
    lies outside its table, an offset goes down, or a kind is none; without it nothing is read.
    """

    def __cinit__(self, image, tables=None, *, bint is_checked=True):
        cdef int number = 0
        cdef size_t n_rows = 0
        self.views = []
        for number, (name, column, dtype) in enumerate(schema_columns()):
            table = image.tables.get(name) if tables is None else tables.get(name, image.tables.get(name))
            if table is None:
                continue
            columns = getattr(table, "columns", table)
            if column not in columns:
                raise ImageError(f"{image.path}: no column {name}.{column}")
            self.take(number, image.path, f"{name}.{column}", columns[column], dtype)
        check_tables(self, image.path)
        if is_checked:
            check(self, image)

    cdef int take(self, int number, path, str name, column, str dtype) except -1:
        cdef Py_buffer view
        code, n_bytes = DTYPES[dtype]
        column = memoryview(column)
        if column.format != code or column.itemsize != n_bytes or column.ndim != 1:
            raise ImageError(f"{path}: column {name} is not {dtype}")
        PyObject_GetBuffer(column, &view, PyBUF_SIMPLE)
        self.data[number] = <const char *>view.buf
        self.length[number] = view.len // n_bytes
        PyBuffer_Release(&view)  # `views` keeps it where it is
        self.views.append(column)
        return 0
