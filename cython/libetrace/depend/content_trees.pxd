# SPDX-License-Identifier: Apache-2.0
# The uses of paths that had several contents, to be found by content and time, and taken out.
from libetrace.core.types cimport u32
from libetrace.depend.walk cimport Walk


# Makes the tree of a path; OUT_OF_MEMORY.
cdef int tree_build(Walk *walk, u32 path) noexcept nogil
# The number in its list of the first use that counts for a content and was not taken; else how many
# there are.
cdef u32 tree_find(const Walk *walk, u32 path, u32 content) noexcept nogil
# Takes a use out, by its number in the list.
cdef void tree_take(Walk *walk, u32 path, u32 number) noexcept nogil
