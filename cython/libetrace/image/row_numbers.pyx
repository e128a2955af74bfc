# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Draft -> tables: strings and paths sorted as bytes, (upid, index) looked up, opens by path."""
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcmp, memset

from libetrace.image.column_builder cimport (
    NONE, PathFacts, Reference, add8, add32, add64, begin_path_opens, count_path_opens, draft_name,
    place_path_opens, renumber_columns, sum_path_opens,
)
from libetrace.core.memory cimport Buffer, buffer_add, buffer_reserve
from libetrace.core.interned cimport Name
from libetrace.image.schema cimport (
    CHILDREN_EXECUTION, CHILDREN_UPID, ENVIRONMENT_STRING, ENVIRONMENT_UPID, EXECUTIONS_INDEX,
    EXECUTIONS_INHERITED_START, EXECUTIONS_OPENS_START, EXECUTIONS_PARENT,
    EXECUTIONS_READERS_START, EXECUTIONS_UPID, INHERITED_EXECUTION, INHERITED_PATH,
    MOUNTS_EXECUTION, OPENS_EXECUTION, OPENS_PATH, PATHS_MODE, PATHS_SIZE, PATHS_STRING,
    PATTERNS_STRING, PIPE_READERS_EXECUTION, STRINGS_BYTES, STRINGS_START, WRAPPERS_EXECUTION,
)
from libetrace.core.types cimport s32, s64, u32, u64

cdef enum:
    MAX_GENERATIONS = 1 << 16  # a parent chain that is longer is a ring


cdef inline size_t n_rows(const Draft *draft) noexcept nogil:
    return draft.columns[EXECUTIONS_UPID].len / sizeof(s64)


# ---- strings and paths ----


# A name while names are sorted.
cdef struct Text:
    const Name *name
    u32 number


cdef int compare_texts(const void *a, const void *b) noexcept nogil:
    cdef const Name *first = (<const Text *>a).name
    cdef const Name *second = (<const Text *>b).name
    cdef int order = memcmp(first.bytes, second.bytes, min(first.len, second.len))
    if order:
        return order
    return (first.len > second.len) - (first.len < second.len)


cdef int add_string(Draft *draft, const Name *name) noexcept nogil:
    if buffer_add(&draft.columns[STRINGS_BYTES], name.bytes, name.len) < 0:
        return -1
    return add64(&draft.columns[STRINGS_START], draft.columns[STRINGS_BYTES].len)


# Numbers of the names in order of their bytes; NULL when there is no memory.
cdef Text *sort_names(const Draft *draft) noexcept nogil:
    cdef Text *texts = <Text *>malloc((draft.names.n + 1) * sizeof(Text))
    cdef u32 i
    if texts == NULL:
        return NULL
    for i in range(draft.names.n):
        texts[i].name = &draft.names.all[i]
        texts[i].number = i
    qsort(texts, draft.names.n, sizeof(Text), compare_texts)
    return texts


# The row of a path with name number `name` in string row `row`.
cdef int add_path(Draft *draft, u32 name, u32 row, u32 *path_rows) noexcept nogil:
    cdef const PathFacts *facts = &(<PathFacts *>draft.facts.data)[name]
    if (<size_t>name + 1) * sizeof(PathFacts) > draft.facts.len or not facts.is_path:
        return 0
    path_rows[name] = <u32>(draft.columns[PATHS_MODE].len)
    if add32(&draft.columns[PATHS_STRING], <s32>row) < 0 \
            or add8(&draft.columns[PATHS_MODE], facts.mode) < 0:
        return -1
    return add64(&draft.columns[PATHS_SIZE], facts.size)


# Fills `strings` and `paths`; rows[0..n) are those of strings by number, rows[n..2n) of paths.
cdef int add_names(Draft *draft, u32 *rows) noexcept nogil:
    cdef Text *texts = sort_names(draft)
    cdef int status = 0
    cdef u32 i
    if texts == NULL:
        return -1
    for i in range(draft.names.n):
        rows[texts[i].number] = i
        if add_string(draft, texts[i].name) < 0 \
                or add_path(draft, texts[i].number, i, rows + draft.names.n) < 0:
            status = -1
            break
    free(texts)
    return status


cdef int settle_names(Draft *draft) noexcept nogil:
    cdef u32 *rows = <u32 *>calloc(2 * <size_t>draft.names.n + 1, sizeof(u32))
    cdef int status = -1
    if rows != NULL:
        status = add_names(draft, rows)
    if status == 0:
        renumber_columns(draft.columns, rows, draft.names.n)
    free(rows)
    return status


# ---- opens ----


# The column `execution` of a table that executions divide by `start`.
cdef int add_owners(Draft *draft, int start, const Buffer *paths, Buffer *owners) noexcept nogil:
    cdef const u64 *starts = <const u64 *>draft.columns[start].data
    cdef size_t row
    cdef u64 i
    if buffer_reserve(owners, paths.len) < 0:
        return -1
    for row in range(n_rows(draft)):
        for i in range(starts[row], starts[row + 1]):
            (<u32 *>owners.data)[i] = <u32>row
    owners.len = paths.len
    return 0


cdef int add_all_owners(Draft *draft) noexcept nogil:
    if add_owners(draft, EXECUTIONS_OPENS_START, &draft.columns[OPENS_PATH],
                  &draft.columns[OPENS_EXECUTION]) < 0:
        return -1
    return add_owners(draft, EXECUTIONS_INHERITED_START, &draft.columns[INHERITED_PATH],
                      &draft.columns[INHERITED_EXECUTION])


cdef int add_path_opens(Draft *draft) noexcept nogil:
    cdef const Buffer *paths = &draft.columns[OPENS_PATH]
    if begin_path_opens(draft.columns, paths.len / sizeof(u32)) < 0:
        return -1
    count_path_opens(draft.columns, paths)
    sum_path_opens(draft.columns)
    place_path_opens(draft.columns, paths, 0)
    return 0


# ---- references ----


# Row of an execution, NONE when there is none: by bisection.
cdef s32 find_row(const Draft *draft, s64 upid, s64 index) noexcept nogil:
    cdef const s64 *upids = <const s64 *>draft.columns[EXECUTIONS_UPID].data
    cdef const s32 *indices = <const s32 *>draft.columns[EXECUTIONS_INDEX].data
    cdef size_t low = 0
    cdef size_t high = n_rows(draft)
    cdef size_t middle
    while low < high:
        middle = (low + high) / 2
        if upids[middle] < upid or (upids[middle] == upid and indices[middle] < index):
            low = middle + 1
        else:
            high = middle
    if low < n_rows(draft) and upids[low] == upid and indices[low] == index:
        return <s32>low
    return NONE


cdef int add_rows_of(Draft *draft, const Buffer *references, Buffer *rows) noexcept nogil:
    cdef const Reference *reference = <const Reference *>references.data
    cdef size_t i
    for i in range(references.len / sizeof(Reference)):
        if add32(rows, find_row(draft, reference[i].upid, reference[i].index)) < 0:
            return -1
    return 0


cdef int add_children(Draft *draft) noexcept nogil:
    cdef const s64 *upids = <const s64 *>draft.columns[CHILDREN_UPID].data
    cdef size_t i
    for i in range(draft.columns[CHILDREN_UPID].len / sizeof(s64)):
        if add32(&draft.columns[CHILDREN_EXECUTION], find_row(draft, upids[i], 0)) < 0:
            return -1
    return 0


# Readers without an execution are left out.
cdef int add_readers(Draft *draft) noexcept nogil:
    cdef u64 *starts = <u64 *>draft.columns[EXECUTIONS_READERS_START].data
    cdef const Reference *readers = <const Reference *>draft.readers.data
    cdef Buffer *out = &draft.columns[PIPE_READERS_EXECUTION]
    cdef u64 at = 0
    cdef size_t row
    cdef s32 reader
    for row in range(n_rows(draft)):
        while at < starts[row + 1]:
            reader = find_row(draft, readers[at].upid, readers[at].index)
            at += 1
            if reader != NONE and add32(out, reader) < 0:
                return -1
        starts[row + 1] = out.len / sizeof(u32)
    return 0


# The execution of process `wrapper` that wraps the execution `row`: the one it descends from.
cdef s32 find_wrapper(const Draft *draft, size_t row, s64 wrapper) noexcept nogil:
    cdef const s64 *upids = <const s64 *>draft.columns[EXECUTIONS_UPID].data
    cdef const s32 *parents = <const s32 *>draft.columns[EXECUTIONS_PARENT].data
    cdef s32 at = parents[row]
    cdef int i
    for i in range(MAX_GENERATIONS):
        if at == NONE:
            break
        if upids[at] == wrapper:
            return at
        at = parents[at]
    at = find_row(draft, wrapper, 1)
    return at if at != NONE else find_row(draft, wrapper, 0)


cdef int add_wrappers(Draft *draft) noexcept nogil:
    cdef const s64 *wrappers = <const s64 *>draft.wrappers.data
    cdef size_t row
    cdef s32 wrapper
    if not draft.has_wrappers:
        return 0
    for row in range(n_rows(draft)):
        wrapper = NONE if wrappers[row] == NONE else find_wrapper(draft, row, wrappers[row])
        if add32(&draft.columns[WRAPPERS_EXECUTION], wrapper) < 0:
            return -1
    return 0


# ---- the rest ----


cdef struct Variable:
    s64 upid
    u32 string


cdef int compare_variables(const void *a, const void *b) noexcept nogil:
    cdef const Variable *first = <const Variable *>a
    cdef const Variable *second = <const Variable *>b
    if first.upid != second.upid:
        return -1 if first.upid < second.upid else 1
    return (first.string > second.string) - (first.string < second.string)


cdef int sort_environment(Draft *draft) noexcept nogil:
    cdef s64 *upids = <s64 *>draft.columns[ENVIRONMENT_UPID].data
    cdef u32 *strings = <u32 *>draft.columns[ENVIRONMENT_STRING].data
    cdef size_t n = draft.columns[ENVIRONMENT_UPID].len / sizeof(s64)
    cdef Variable *variables = <Variable *>malloc((n + 1) * sizeof(Variable))
    cdef size_t i
    if variables == NULL:
        return -1
    for i in range(n):
        variables[i].upid = upids[i]
        variables[i].string = strings[i]
    qsort(variables, n, sizeof(Variable), compare_variables)
    for i in range(n):
        upids[i] = variables[i].upid
        strings[i] = variables[i].string
    free(variables)
    return 0


# JSON has the bits of the patterns and not their text: as many empty ones as there may be.
cdef int add_patterns(Draft *draft) noexcept nogil:
    cdef s64 empty
    cdef s64 i
    if draft.n_pattern_bytes == NONE:
        return 0
    empty = draft_name(draft, b"", 0)
    for i in range(8 * draft.n_pattern_bytes):
        if empty < 0 or add32(&draft.columns[PATTERNS_STRING], <s32>empty) < 0:
            return -1
    return 0


cdef int settle(Draft *draft) noexcept nogil:
    if add_patterns(draft) < 0 or settle_names(draft) < 0 or add_all_owners(draft) < 0 or add_path_opens(draft) < 0 \
            or add_rows_of(draft, &draft.parents, &draft.columns[EXECUTIONS_PARENT]) < 0 \
            or add_rows_of(draft, &draft.mounters, &draft.columns[MOUNTS_EXECUTION]) < 0 \
            or add_children(draft) < 0 or add_readers(draft) < 0 or add_wrappers(draft) < 0:
        return -1
    return sort_environment(draft)
