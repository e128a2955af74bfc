# SPDX-License-Identifier: Apache-2.0
# The uses of paths that had several contents, to be found by content and time, and taken out.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport u32, u64
from libetrace.depend.uses cimport Ends, UseLists


# A tree for each such path: trees[at[path]:], its leaves in the order of the list of the path. A
# node holds the greatest value below it; that of a use is the last node of the path it counts for,
# counted from 1, and 0 when it was taken out.
cdef struct ContentTrees:
    u64 *at  # by path, of those with several contents
    u32 *trees
    u64 n


cdef int trees_init(ContentTrees *trees, const Ends *ends, const UseLists *by_path) noexcept nogil
cdef void trees_free(ContentTrees *trees) noexcept nogil
# Another one with uses of its own to take out; `at` is shared. -1: no memory.
cdef int trees_copy(ContentTrees *trees, const ContentTrees *source) noexcept nogil
# The first use in the list of a path that counts for a node and was not taken out; the end without.
cdef u64 trees_find(const ContentTrees *trees, const Ends *ends, const UseLists *by_path, u32 path,
                    u32 node) noexcept nogil
# Gives a use its value, or 0 to take it out.
cdef void trees_set(ContentTrees *trees, const UseLists *by_path, u32 path, u64 use,
                    u32 value) noexcept nogil
cdef u32 value_of(const Ends *ends, const UseLists *by_path, u32 path, u64 use) noexcept nogil
