# SPDX-License-Identifier: Apache-2.0
# Tables of an image: rows of executions in parts, made by any thread, and columns of the whole trace.
from libetrace.core.memory cimport Buffer, Spill
from libetrace.core.types cimport u32, u64
from libetrace.image.schema cimport N_COLUMNS
from libetrace.trace.trace cimport Trace

cdef enum:
    N_LISTS = 6  # that an execution has
    OPENS = 0  # the list of opens


# Rows of a range of processes: the columns one after the other in one piece of memory.
cdef struct Part:
    char *data
    u64 start[N_COLUMNS + 1]  # bytes; multiples of 8
    u64 len[N_COLUMNS]
    u64 first[N_LISTS]  # rows of the whole table that the lists of the part begin at


cdef struct Tables:
    u32 *ranges  # first process of each part, and the end
    Part *parts
    u64 n_parts
    Buffer *records  # of grouped processes, by process; NULL without groups
    u32 *rows  # of strings by number, then of paths
    Buffer columns[N_COLUMNS]  # those that are not made in parts


# Cuts the processes into parts.
cdef int tables_init(Tables *tables, Trace *trace) noexcept nogil
cdef void tables_free(Tables *tables, const Trace *trace) noexcept nogil
# Makes parts until none is left; called by every thread.
cdef int build_parts(Tables *tables, Trace *trace) noexcept nogil
# Numbers the strings and paths that some row names, and adds environment and mounts.
cdef int number_rows(Tables *tables, Trace *trace) noexcept nogil
# Turns numbers in parts into rows of whole tables, until no part is left; called by every thread.
cdef int renumber_parts(Tables *tables, Trace *trace) noexcept nogil
# The opens of each path, when all parts are renumbered.
cdef int index_opens(Tables *tables, const Spill *spill) noexcept nogil
