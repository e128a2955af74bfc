# SPDX-License-Identifier: Apache-2.0
# Renamed directories: what becomes of the files below them.
from libetrace.core.types cimport u32, u8
from libetrace.trace.trace cimport Event, Trace


# A file that the rename of a directory above it moved; numbers of paths.
cdef struct Moved:
    const Event *event  # RenameTo of the directory
    u32 old
    u32 new
    u8 is_exchange


# Notes what the renames of directories moved in `trace.moved`, in order of events' addresses, with the
# numbers of worker 0's names; there may be new ones then. Names of all threads are joined, and `order`
# has their numbers in order of bytes. -1 when there is no memory.
cdef int find_moved(Trace *trace, const u32 *order) noexcept nogil
# The first that the event moved, and how many.
cdef const Moved *moved_by(const Trace *trace, const Event *event, u32 *n) noexcept nogil
