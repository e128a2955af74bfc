# SPDX-License-Identifier: Apache-2.0
# When what a name stood for came to an end (Ends of uses.pxd): docs/dependencies.md.
from libetrace.depend.raw_uses cimport ChangeColumns, OpenColumns
from libetrace.core.types cimport u8, u32, u64
from libetrace.depend.uses cimport Ends, RawUse


# `modes` are the type bits of the paths. -1: no memory.
cdef int ends_init(Ends *ends, u32 n_paths, const ChangeColumns *changes, const OpenColumns *opens,
                   const u8 *modes) noexcept nogil
cdef void ends_free(Ends *ends) noexcept nogil
# Finds the last content of each path, from the uses that write.
cdef int ends_find_last(Ends *ends, const RawUse *raw, u64 n_raw) noexcept nogil
# The node of a use: the content that a read begins with, the last that a write gives to.
cdef u32 node_of(const Ends *ends, const RawUse *raw, u8 access, bint is_mirrored) noexcept nogil
