# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Memory of a database that is being read: a table of names and one growing array a column."""
from cpython.buffer cimport PyBuffer_FillInfo
from libc.string cimport memset

from libetrace.core.memory cimport buffer_free
from libetrace.core.interned cimport NO_NAME, names_free, names_init, names_intern, names_seed
from libetrace.image.schema cimport N_COLUMNS, PATHS_MODE, PATHS_OPENS_START, PATH_OPENS_OPEN

from libetrace.image.columns import COLUMNS
from libetrace.image.header import has_one_more

cdef bint[N_COLUMNS] IS_START
cdef bint[N_COLUMNS] HAS_STRINGS  # numbers of strings, until they become rows
cdef bint[N_COLUMNS] HAS_PATHS

for _number, (_table, _column, _schema) in enumerate(COLUMNS):
    IS_START[_number] = has_one_more(_column)
    HAS_STRINGS[_number] = _schema.of == "strings" and _column != "start" and _table != "paths"
    HAS_PATHS[_number] = _schema.of == "paths"


cdef int draft_clear(Draft *draft) noexcept nogil:
    cdef int i
    for i in range(N_COLUMNS):
        draft.columns[i].len = 0
        if IS_START[i] and add64(&draft.columns[i], 0) < 0:
            return -1
    draft.facts.len = draft.parents.len = draft.readers.len = 0
    draft.wrappers.len = draft.mounters.len = 0
    draft.n_pattern_bytes = NONE
    draft.has_wrappers = draft.has_links = draft.has_compilations = draft.has_last_uses = False
    draft.has_usage = draft.has_uses = draft.has_written = draft.has_fork_times = False
    return 0


cdef int draft_init(Draft *draft) noexcept nogil:
    memset(draft, 0, sizeof(draft[0]))
    if names_init(&draft.names, names_seed()) < 0:
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


cdef class Column:
    """The bytes of a column, through the buffer protocol."""

    def __dealloc__(self):
        buffer_free(&self.buffer)

    def __len__(self):
        return self.buffer.len

    def __getbuffer__(self, Py_buffer *view, int flags):
        if buffer_reserve(&self.buffer, 1) < 0:  # an empty one has no memory yet
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


cdef void renumber_columns(Buffer *columns, const u32 *rows, u32 n) noexcept nogil:
    cdef int i
    for i in range(N_COLUMNS):
        if HAS_STRINGS[i]:
            renumber(&columns[i], rows)
        elif HAS_PATHS[i]:
            renumber(&columns[i], rows + n)


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


# start[p + 1] runs from the first place of path p to after its last.
cdef void place_path_opens(Buffer *columns, const Buffer *paths, u32 first) noexcept nogil:
    cdef u64 *start = <u64 *>columns[PATHS_OPENS_START].data
    cdef u32 *opens = <u32 *>columns[PATH_OPENS_OPEN].data
    cdef const u32 *path = <const u32 *>paths.data
    cdef size_t i
    for i in range(paths.len / sizeof(u32)):
        opens[start[path[i] + 1]] = first + <u32>i
        start[path[i] + 1] += 1
