# SPDX-License-Identifier: Apache-2.0
# Records to calls, one thread after the other.
from libetrace.core.memory cimport Arena, Buffer
from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.xray.durations cimport Chunk

cdef enum:
    NO_ROW = 0xffffffff


cdef struct Slot:
    u64 key
    u32 row  # + 1; 0: free


cdef struct Rows:
    Slot *slots
    u64 mask
    u64 n
    Buffer keys  # u64 by row


cdef int rows_grow(Rows *rows) noexcept nogil
cdef void rows_free(Rows *rows) noexcept nogil


# The row of a key, NO_ROW when it has none.
cdef inline u32 rows_find(const Rows *rows, u64 key) noexcept nogil:
    cdef u64 at = key * <u64>0x9e3779b97f4a7c15
    at = (at ^ at >> 32) & rows.mask
    if rows.slots == NULL:
        return NO_ROW
    while rows.slots[at].row:
        if rows.slots[at].key == key:
            return rows.slots[at].row - 1
        at = (at + 1) & rows.mask
    return NO_ROW


cdef u32 rows_add(Rows *rows, u64 key) noexcept nogil
# The row of a key, a new one if need be; NO_ROW when there is no memory.
cdef inline u32 rows_get(Rows *rows, u64 key) noexcept nogil:
    cdef u32 row = rows_find(rows, key)
    return row if row != NO_ROW else rows_add(rows, key)


cdef enum:
    NO_CALL = -1
    N_DIRECT = 4096


# The kinds of rows of an account.
cdef enum By:
    BY_FUNCTION = 0
    BY_THREAD = 1  # function in a thread
    BY_EDGE = 2  # function called by a function


# How a call ended.
cdef enum Ending:
    BY_EXIT = 0
    BY_TAIL_EXIT = 1
    BY_CALLER = 2  # no exit of its own: it ended before its caller did
    BY_END_OF_LOG = 3
    LEFT_OUT = 4  # by a filter


cdef struct Options:
    int by
    bint wants_durations
    bint wants_calls
    bint wants_nodes
    bint splits_nodes  # each thread has roots of its own
    bint counts_deduced  # BY_CALLER counts as an end
    u64 shortest  # ticks
    u64 from_tsc
    u64 until_tsc


cdef struct Frame:
    u64 start
    u64 child_ticks
    s64 call
    u64 record  # of its enter
    u32 row  # of `functions`
    u32 key  # of `keys`
    u32 node


# Columns of calls, in the order in which they began in each thread.
cdef struct Calls:
    u64 n
    u64 *start
    u64 *ticks
    u64 *self_ticks
    s64 *parent
    u32 *function  # id
    u32 *depth
    u32 *thread
    u8 *ending


# The sums over the calls of a row.
cdef struct Total:
    u64 count
    u64 minimum
    u64 maximum
    u64 ticks
    u64 self_ticks
    Chunk *durations  # of each call, when they are wanted


# One path from a root: (parent node + 1, function) is its key in `paths`. Roots have 0 for their parent
# or, split, 0xffffffff less the row of their thread in `roots`.
cdef struct Node:
    u64 n_calls
    u64 ticks
    u64 self_ticks


cdef struct FunctionState:
    u32 n_open  # how often it is on the stack
    bint is_hidden


cdef struct Expander:
    Options options
    Rows functions  # ids
    Buffer states  # FunctionState by function
    u32 direct[N_DIRECT]  # rows + 1 of small ids
    Rows *shown  # ids that are not hidden; NULL: all
    Rows keys
    Buffer totals  # Total by key
    Rows paths
    Buffer nodes  # Node by path
    Rows roots  # process << 32 | thread
    u64 root  # parent of the current thread's roots
    Arena arena  # of durations
    bint is_out_of_memory
    Calls calls
    Buffer frames
    u32 thread
    u32 kinds  # bits of those that were seen
    u64 last_tsc
    u64 n_unmatched_exits
    u64 n_deduced
    u64 n_unfinished
    u64 n_backwards
    u64 record  # at hand, of the current thread
    u8 *left_out  # by record: an enter or exit of no call, or of one that is left out; NULL: not asked
    u64 *position  # of bytes that have been read, for who watches; NULL: nobody does


cdef int expander_init(Expander *expander, u64 n_records) noexcept nogil
cdef void expander_free(Expander *expander) noexcept nogil
# The next records are those of this thread; -1 without memory.
cdef int expand_begin(Expander *expander, u32 process, u32 thread) noexcept nogil
# Take records of the current thread; -1 without memory.
cdef int expand(Expander *expander, const u64 *tsc, const u32 *function, const u8 *kind, u64 n) noexcept nogil
# The thread has no more records.
cdef int expand_end(Expander *expander) noexcept nogil
# All columns as (name, format, bytes); calls that were left out are gone from `calls` afterwards.
cdef list call_columns(Calls *calls)
