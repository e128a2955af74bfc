# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Memory of a database that is being read: a table of names and one growing array a column."""
from libc.string cimport memset

from libetrace.core.memory cimport buffer_free
from libetrace.core.interned cimport NO_NAME, names_free, names_init, names_intern
from libetrace.image.schema cimport (
    COMPILATIONS_DEFINITIONS_START, COMPILATIONS_FILES_START, COMPILATIONS_HEADERS_START,
    COMPILATIONS_INCLUDES_START, COMPILATIONS_OBJECTS_START, EXECUTIONS_ARGV_START,
    EXECUTIONS_CHILDREN_START, EXECUTIONS_CPUS_START, EXECUTIONS_INHERITED_START,
    EXECUTIONS_OPENS_START, EXECUTIONS_READERS_START, N_COLUMNS,
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
    draft.has_wrappers = draft.has_links = draft.has_compilations = False
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
