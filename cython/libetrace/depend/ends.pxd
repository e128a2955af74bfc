# SPDX-License-Identifier: Apache-2.0
# When the contents of a name ended: docs/dependencies.md.
from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.depend.uses cimport Uses


# Those of path p are [start[p], start[p + 1]), in order of time. A path with n ends has n + 1
# contents, numbered from 0 in order of time, mirrored ones backwards.
cdef struct Ends:
    const u64 *start  # n_paths + 1
    const s64 *time
    const u8 *is_away  # the name is gone; else the file is new or empty
    const u32 *last  # number of the last content that something wrote, by path
    u64 n


cdef inline u32 n_ends(const Ends *ends, u32 path) noexcept nogil:
    return <u32>(ends.start[path + 1] - ends.start[path])


# The content of `path` that a use is of: the one that a read begins with, the last that a write
# gives to.
cdef u32 content_of(const Ends *ends, const Uses *uses, u64 row, u32 path, bint is_write,
                    bint is_mirrored) noexcept nogil
# Writes `last`, from the writes of all paths: writes[starts[p]:starts[p + 1]] are those of p.
cdef void find_last_contents(const Ends *ends, const Uses *uses, u32 n_paths, const u64 *starts,
                             const u32 *writes, u32 *last) noexcept nogil
