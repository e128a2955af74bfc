# SPDX-License-Identifier: Apache-2.0
# Tables of descriptors of pipes: what each event does to one, and who has held which end alone.
from libetrace.core.memory cimport Buffer
from libetrace.trace.trace cimport Event, Trace
from libetrace.core.types cimport s32, u8, u32, u64

cdef enum:
    READ_END = 0
    WRITE_END = 1


# A descriptor.
cdef struct Held:
    s32 fd
    u32 pipe
    u8 end
    bint is_cloexec
    u32 closed_by  # process whose exec closes it, plus one


# The ends of a pipe that a table has held.
cdef struct View:
    u32 pipe
    u32 n[2]  # descriptors of each end
    u64 alone_until[2]  # step at which an end was last held without the other
    u64 changed  # step of the last change


cdef struct Table:
    Buffer held  # Held
    Buffer views  # View
    u32 n_members
    u32 owner
    bint is_shared  # or was
    Table *older


cdef struct Pipe:
    u32 process  # that made it
    u32 index
    bint is_copied[2]  # by the execution that made it
    bint is_handed_on[2]  # to a child that has copied it
    bint is_jobserver  # some command began with both ends


# An execution that holds an end alone.
cdef struct User:
    u32 pipe
    u32 execution


# An end that an execution made and held alone when it forked a child.
cdef struct Offer:
    u32 pipe
    u8 end


cdef struct Member:
    Table *table
    u64 since  # step
    u32 index
    bint has_ended
    u32 inherited  # position and number of what the fork left for it in Pipes.snapshots
    u32 n_inherited
    u32 offers  # the same, in Pipes.offers
    u32 n_offers


cdef struct Pipes:
    Trace *trace
    Member *members  # by process
    Buffer pipes  # Pipe
    Buffer users[2]  # User
    Buffer snapshots  # Held
    Buffer offers  # Offer
    Buffer waiting  # groups whose fork has been seen
    Table *tables  # of the group at hand
    Table *spare
    u64 step
    u64 work
    u64 budget


cdef inline Pipe *pipe_of(Pipes *pipes, u32 number) noexcept nogil:
    return &(<Pipe *>pipes.pipes.data)[number]


cdef inline bint is_alone(const View *view, int end) noexcept nogil:
    return view.n[end] > 0 and view.n[1 - end] == 0


# Changes of a table by an event of the process; -1 without memory.
cdef int make_pipe(Pipes *pipes, Table *table, u32 process, const Event *event) noexcept nogil
cdef int open_fd(Pipes *pipes, Table *table, u32 process, const Event *event) noexcept nogil
cdef int close_fd(Pipes *pipes, Table *table, u32 process, const Event *event) noexcept nogil
cdef int copy_fd(Pipes *pipes, Table *table, u32 process, s32 old_fd, s32 new_fd,
                 bint is_cloexec) noexcept nogil
# One more descriptor of a table, or n of them.
cdef int hold(Pipes *pipes, Table *table, const Held *held) noexcept nogil
cdef int fill_table(Pipes *pipes, Table *table, const Held *held, size_t n) noexcept nogil
# The process's execution is a user of the end if it has held it alone.
cdef int note_user(Pipes *pipes, u32 process, const View *view, int end) noexcept nogil
# An empty table: one that is done with, if there is any; NULL without memory.
cdef Table *new_table(Pipes *pipes, u32 owner) noexcept nogil
# The tables of a group that has been followed are for the next one.
cdef void spare_tables(Pipes *pipes) noexcept nogil
cdef void free_tables(Table **tables) noexcept nogil
