# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Memory of a database that is being read: a table of names and one growing array a column."""
from cpython.buffer cimport PyBuffer_FillInfo
from libc.string cimport memset

from libetrace.core.memory cimport buffer_free
from libetrace.core.interned cimport NO_NAME, names_free, names_init, names_intern
from libetrace.image.schema cimport (
    ARGUMENTS_STRING, CHANGES_NAME, COMPILATIONS_DEFINITIONS_START, COMPILATIONS_FILES_START,
    COMPILATIONS_HEADERS_START, COMPILATIONS_INCLUDES_START, COMPILATIONS_LANGUAGE,
    COMPILATIONS_OBJECTS_START, COMPILATION_DEFINITIONS_NAME, COMPILATION_DEFINITIONS_VALUE,
    COMPILATION_FILES_STRING, COMPILATION_HEADERS_STRING, COMPILATION_INCLUDES_STRING,
    COMPILATION_OBJECTS_PATH, ENVIRONMENT_STRING, EXECUTIONS_ARGV_START, EXECUTIONS_BINARY,
    EXECUTIONS_CHILDREN_START, EXECUTIONS_CPUS_START, EXECUTIONS_CWD, EXECUTIONS_INHERITED_START,
    EXECUTIONS_OPENS_START, EXECUTIONS_READERS_START, INHERITED_PATH, LINKED_PATH, MOUNTS_SOURCE,
    MOUNTS_TARGET, MOUNTS_TYPE, N_COLUMNS, OPENS_ORIGINAL, OPENS_PATH, PATHS_MODE,
    PATHS_OPENS_START, PATH_OPENS_OPEN, PATTERNS_STRING,
)

cdef enum:
    N_STARTS = 11

cdef int[N_STARTS] STARTS
STARTS[:] = [
    EXECUTIONS_ARGV_START, EXECUTIONS_OPENS_START, EXECUTIONS_CHILDREN_START,
    EXECUTIONS_READERS_START, EXECUTIONS_CPUS_START, EXECUTIONS_INHERITED_START, COMPILATIONS_FILES_START,
    COMPILATIONS_INCLUDES_START, COMPILATIONS_DEFINITIONS_START, COMPILATIONS_HEADERS_START,
    COMPILATIONS_OBJECTS_START,
]


cdef int draft_clear(Draft *draft) noexcept nogil:
    cdef int i
    for i in range(N_COLUMNS):
        draft.columns[i].len = 0
    for i in range(N_STARTS):
        if add64(&draft.columns[STARTS[i]], 0) < 0:
            return -1
    draft.facts.len = draft.parents.len = draft.readers.len = 0
    draft.wrappers.len = draft.mounters.len = 0
    draft.n_pattern_bytes = NONE
    draft.has_wrappers = draft.has_links = draft.has_compilations = draft.tells_last = False
    draft.has_usage = draft.has_uses = False
    return 0


cdef int draft_init(Draft *draft) noexcept nogil:
    memset(draft, 0, sizeof(draft[0]))
    if names_init(&draft.names, 0) < 0:
        return -1
    return draft_clear(draft)


cdef void draft_free(Draft *draft) noexcept nogil:
    cdef int i
    for i in range(N_COLUMNS):
        buffer_free(&draft.columns[i])
    buffer_free(&draft.facts)
    buffer_free(&draft.parents)
    buffer_free(&draft.readers)
    buffer_free(&draft.wrappers)
    buffer_free(&draft.mounters)
    names_free(&draft.names)


cdef s64 draft_name(Draft *draft, const char *bytes, size_t len) noexcept nogil:
    cdef u32 name = names_intern(&draft.names, bytes, len)
    return NONE if name == NO_NAME else <s64>name


# Facts of the names up to `name`, new ones zero.
cdef int reserve_facts(Draft *draft, u32 name) noexcept nogil:
    cdef size_t wanted = (<size_t>name + 1) * sizeof(PathFacts)
    if draft.facts.len >= wanted:
        return 0
    if buffer_reserve(&draft.facts, wanted - draft.facts.len) < 0:
        return -1
    memset(draft.facts.data + draft.facts.len, 0, wanted - draft.facts.len)
    draft.facts.len = wanted
    return 0


cdef s64 draft_path(Draft *draft, const char *bytes, size_t len) noexcept nogil:
    cdef u32 name = names_intern(&draft.names, bytes, len)
    if name == NO_NAME or reserve_facts(draft, name) < 0:
        return NONE
    facts_of(draft, name).is_path = True
    return <s64>name


# ---- columns ----


STRING_COLUMNS[:] = [
    EXECUTIONS_CWD, ARGUMENTS_STRING, OPENS_ORIGINAL, CHANGES_NAME, ENVIRONMENT_STRING, MOUNTS_SOURCE,
    MOUNTS_TARGET, MOUNTS_TYPE, COMPILATIONS_LANGUAGE, COMPILATION_FILES_STRING,
    COMPILATION_INCLUDES_STRING, COMPILATION_DEFINITIONS_NAME, COMPILATION_DEFINITIONS_VALUE,
    COMPILATION_HEADERS_STRING, PATTERNS_STRING,
]
PATH_COLUMNS[:] = [
    EXECUTIONS_BINARY, OPENS_PATH, INHERITED_PATH, LINKED_PATH, COMPILATION_OBJECTS_PATH,
]


cdef class Column:
    """The bytes of a column, through the buffer protocol."""

    def __dealloc__(self):
        buffer_free(&self.buffer)

    def __len__(self):
        return self.buffer.len

    def __getbuffer__(self, Py_buffer *view, int flags):
        if buffer_reserve(&self.buffer, 1) < 0:  # an empty one has no memory yet, and NULL is no place
            raise MemoryError
        PyBuffer_FillInfo(view, self, self.buffer.data, self.buffer.len, True, flags)


cdef Column make_column(Buffer *buffer):
    cdef Column column = Column.__new__(Column)
    column.buffer = buffer[0]
    memset(buffer, 0, sizeof(buffer[0]))
    return column


cdef void renumber(Buffer *column, const u32 *rows) noexcept nogil:
    cdef s32 *numbers = <s32 *>column.data
    cdef size_t i
    for i in range(column.len / sizeof(s32)):
        if numbers[i] != NONE:
            numbers[i] = <s32>rows[numbers[i]]


cdef int begin_path_opens(Buffer *columns, size_t n_opens) noexcept nogil:
    cdef Buffer *starts = &columns[PATHS_OPENS_START]
    cdef Buffer *opens = &columns[PATH_OPENS_OPEN]
    cdef size_t n_paths = columns[PATHS_MODE].len
    if buffer_reserve(starts, (n_paths + 2) * sizeof(u64)) < 0 \
            or buffer_reserve(opens, n_opens * sizeof(u32)) < 0:
        return -1
    memset(starts.data, 0, (n_paths + 2) * sizeof(u64))
    starts.len = (n_paths + 1) * sizeof(u64)
    opens.len = n_opens * sizeof(u32)
    return 0


cdef void count_path_opens(Buffer *columns, const Buffer *paths) noexcept nogil:
    cdef u64 *start = <u64 *>columns[PATHS_OPENS_START].data
    cdef const u32 *path = <const u32 *>paths.data
    cdef size_t i
    for i in range(paths.len / sizeof(u32)):
        start[path[i] + 2] += 1


cdef void sum_path_opens(Buffer *columns) noexcept nogil:
    cdef u64 *start = <u64 *>columns[PATHS_OPENS_START].data
    cdef size_t i
    for i in range(columns[PATHS_MODE].len + 1):
        start[i + 1] += start[i]


# start[p + 1] runs from the first place of path p to behind its last.
cdef void place_path_opens(Buffer *columns, const Buffer *paths, u32 first) noexcept nogil:
    cdef u64 *start = <u64 *>columns[PATHS_OPENS_START].data
    cdef u32 *opens = <u32 *>columns[PATH_OPENS_OPEN].data
    cdef const u32 *path = <const u32 *>paths.data
    cdef size_t i
    for i in range(paths.len / sizeof(u32)):
        opens[start[path[i] + 1]] = first + <u32>i
        start[path[i] + 1] += 1
