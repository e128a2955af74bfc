# SPDX-License-Identifier: Apache-2.0
# The whole trace, as the passes after the reader see it.
from libetrace.core.crew cimport MAX_THREADS, Workload
from libetrace.core.memory cimport Arena, Buffer
from libetrace.core.spill cimport Spill
from libetrace.core.interned cimport Names
from libetrace.trace.event_model cimport N_KINDS, Chunk, Event, Program, Task
from libetrace.trace.report cimport Report
from libetrace.trace.stream cimport Stream
from libetrace.core.types cimport s64, u8, u32, u64

cdef enum:
    NO_PROCESS = 0xffffffff
    CLONE_FILES = 0x400
    CLONE_THREAD = 0x10000

# What some row uses a string as.
cdef enum:
    STRING
    PATH
    FACTS  # an open with the results of lstat
    N_USES


# An execution began with descriptor `fd`, which was descriptor `source` at the upid's start.
cdef struct Wanted:
    u32 index
    u8 fd
    u8 source
    bint has_survived  # an exec: `source` must not close on exec


# One upid of the trace.
cdef struct Process:
    s64 upid
    Event *first  # live events in order of time
    Event *last
    Task *tail  # the task of the upid's last event, and its chunk
    Chunk *tail_chunk
    Program **programs  # of the executions from 1 on
    Program *inherited  # of the nearest ancestor that executed one
    Event **pipe_events  # those that can touch a descriptor of a pipe
    Event *fork_event  # that made it
    void *snapshots  # Snapshot of each fork, see inherited.pxd
    Wanted *wanted  # descriptors that executions began with, by index
    u32 n_wanted
    u32 n_pipe_events
    u32 n_programs
    u32 first_execution  # row of its index 0, if it has rows
    u32 parent
    u32 parent_index
    u32 group  # of upids that share descriptor tables; a process on its own is its group
    u32 next_in_group
    u32 n_events
    u64 exit_status  # of its last Exit
    u8 mark  # of whichever pass is at work
    bint is_unsorted
    bint has_exit
    bint inherits  # descriptors: the fork comes before its first event
    bint shares_files  # the table itself
    bint is_thread  # of its parent


# A distinct string in all threads together; in order of bytes.
cdef struct Path:
    const char *bytes
    u32 len
    s64 size
    u32 mode  # bits of the stat, 0 when it does not exist
    bint wants_stat


# A SchedFork.
cdef struct Claim:
    s64 child
    Event *event
    u64 flags
    u32 parent
    u32 index


# Readers of an execution's pipes: both are rows of executions.
cdef struct Edge:
    u32 writer
    u32 reader


# What each thread has of its own.
cdef struct Worker:
    Arena arena
    Names names
    u32 *ranks  # number of a name -> number of the path
    Buffer claims  # Claim
    Report report


cdef struct Trace:
    const char *data  # NULL: it comes through `stream`
    Stream stream
    Spill spill  # of events and rows
    Workload load  # in bytes; the units of work are chunks, processes, paths or parts
    Chunk *chunks
    u32 n_chunks
    size_t chunk_bytes
    u32 n_workers
    Worker workers[MAX_THREADS]
    Process *processes  # by upid
    u32 n_processes
    u32 *slots  # number of a process, plus one, by upid
    u32 mask
    u64 seed
    u32 n_executions
    Path *paths
    u32 n_paths
    u32 empty  # number of the empty string among them
    u8 *uses[N_USES]  # whether some row uses a path as that, by number
    Edge *edges  # by writer, then reader
    u64 n_edges
    s64 start
    s64 end
    u64 n_lines
    Report report
    bint no_stat
    bint is_mapped  # `data` is a file's
    u64 n_kinds_seen[N_KINDS]  # events by kind


# Processes without events, and upid 0 of the environment, have no executions.
cdef inline bint has_rows(const Process *process) noexcept nogil:
    return process.upid != 0 and process.n_events > 0

cdef u32 find_process(const Trace *trace, s64 upid) noexcept nogil
cdef u64 event_line(const Trace *trace, const Event *event) noexcept nogil
# Takes dead events out of the chain and counts the others.
cdef void drop_dead(const Trace *trace, Process *process) noexcept nogil
cdef int compare_events(const Event *a, const Event *b) noexcept nogil
