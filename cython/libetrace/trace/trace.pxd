# SPDX-License-Identifier: Apache-2.0
# The trace: events in one chain for each upid, in chunks; processes, paths, problems.
from libetrace.core.crew cimport MAX_THREADS, Workload
from libetrace.core.interned cimport Names
from libetrace.core.memory cimport Arena, Buffer, Spill
from libetrace.core.types cimport N_USAGE, s32, s64, u8, u16, u32, u64
from libetrace.trace.events cimport ETRACE_MAX_DATA

cdef enum:
    NO_PREFIX
    UNKNOWN_TAG
    BAD_ARGUMENTS
    WRONG_UPID
    STRAY_STRING
    BAD_STRING
    INCOMPLETE
    CUT_OFF
    NO_FOLLOWER
    NO_LEADER
    SECOND_PARENT
    NO_ENVIRONMENT
    LOST_EVENTS
    TOO_MANY_PIPES
    TOO_MANY_MOVES
    N_PROBLEMS


cdef enum:
    N_PROBLEM_LINES = 5


cdef struct Report:
    u64 count[N_PROBLEMS]
    u64 lines[N_PROBLEMS][N_PROBLEM_LINES]  # ascending, as many as counted


cdef void report_add(Report *report, int problem, u64 line, u64 count) noexcept nogil
cdef void report_merge(Report *into, const Report *other, u64 first_line) noexcept nogil


cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass


cdef struct Stream:
    int fd  # -1: the trace is in memory
    pthread_mutex_t lock
    Buffer rest  # begin of a line whose end has not come
    u64 n_bytes  # read so far
    bint is_over
    int error  # errno


cdef void stream_init(Stream *stream, int fd) noexcept nogil
cdef void stream_free(Stream *stream) noexcept nogil
cdef void stream_lock(Stream *stream) noexcept nogil
cdef void stream_unlock(Stream *stream) noexcept nogil
# Fills `text` with whole lines, `wanted` bytes or some more; none when the stream is over or
# cancelled[0] is set. -1: stream.error says why, or there is no memory.
cdef int stream_read(Stream *stream, Buffer *text, size_t wanted,
                     const u64 *cancelled) noexcept nogil


cdef enum:
    DEAD = 255  # kind of an event that a problem has cost
    CLOEXEC = 4  # in Event.access, beside the access bits 0 to 2
    REOPENS_PIPE = 8  # Open of /dev/fd/N and the like
    BY_EXEC = 16  # Close that belongs to the New_proc after it
    HAS_FAILED = 32  # Mount, Umount: the failure is the event after it
    IS_CLONE = 64  # SchedFork: the event before it is its SysClone
    EMPTIES = 64  # Open: the file is empty or new after it
    EXCHANGES = 64  # Rename2From: both names stay
    GOES_ON = 128  # UPID of the same group as the one before
    ACCESS = 3
    MAX_CHUNKS = 0xffff
    N_KINDS = 32


# The command of a New_proc.
cdef struct Program:
    u32 names[ETRACE_MAX_DATA]  # PI, PP, CW
    u32 chunk
    u32 n_arguments
    const u32 *arguments  # names
    u64 n_copied  # arguments that forks have copied


# Mount and Umount.
cdef struct MountCall:
    u32 names[ETRACE_MAX_DATA]  # in the order of the event's strings
    u64 flags


# Usage: since the process was made; -1: not known.
cdef struct UsageSums:
    s64 values[N_USAGE]


cdef struct NamePair:
    u32 first
    u32 second


cdef union Payload:
    NamePair name  # Open: FN and FO; renames and links: the path; Symlink: SL and SR
    s64 number  # SchedFork: child; SysClone: flags; Exit: status; UPID: upid; Written: bytes cut
    Program *program
    MountCall *mount
    UsageSums *usage


cdef struct Event:
    s64 time
    Event *next
    Payload payload
    s32 fd  # Open, Close, Written; Pipe: fd1; Dup: oldfd; Symlink, UPID: number of the name of its text
    s32 fd2  # Pipe: fd2; Dup: newfd; Written: number of the name of its text
    u32 line  # in the chunk
    u32 cpu
    u16 chunk
    u8 kind
    u8 access


# How far the strings of a upid's last event have come.
cdef enum AssemblyState:
    UNSEEN  # no event yet in this chunk: the event may have begun in one before
    IDLE  # the event is whole
    READING
    LOST  # the event is lost: its strings are passed over


cdef struct Text:
    const char *bytes  # in the chunk, or in `spill` when it came in pieces or the chunk is over
    size_t len
    bint is_spilled
    Buffer spill


cdef struct Assembly:
    u8 state
    u8 expected  # code of the string that comes next
    u8 next  # its position in the event
    bint has_text  # a string has begun
    bint in_parts  # as TAG[n]
    bint is_continued  # between Cont and Cont_end
    bint is_closed  # right after Cont_end
    u32 part  # number of the next part or item
    u32 absent
    u32 sizes[ETRACE_MAX_DATA]
    u32 names[ETRACE_MAX_DATA]
    u32 arguments_left  # bytes
    Event *event
    Text text
    Buffer arguments  # u32: names so far


# One upid in one chunk.
cdef struct Task:
    s64 upid
    Event *first
    Event *last
    bint is_unsorted
    bint begins_with_upid  # its first line but for strays
    Assembly assembly


# A string before any event of its upid in the chunk.
cdef struct Stray:
    Task *task
    const char *text  # a copy, for the text of the chunk goes
    u32 len
    u32 line


cdef struct Chunk:
    const char *begin
    const char *end  # after a newline, or the end of the trace
    u16 number
    bint is_first  # of a file
    u64 first_line  # lines before the chunk
    u64 n_lines
    u64 n_events[N_KINDS]
    s64 min_time  # of its lines, those of upid 0 left out
    s64 max_time
    Arena *arena
    Names *names
    u32 **ranks  # of those names among the paths, once they are known
    Task **slots  # by upid
    u32 mask
    Buffer tasks  # Task *, in order of appearance
    Buffer strays  # Stray
    Report report


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
    s32 source
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
    u32 n_inherited_arguments  # the first ones of its arguments, which index 0 shows
    Event **pipe_events  # those that can touch a descriptor of a pipe
    Event *fork_event  # that made it
    void *snapshots  # Snapshot of each fork, see verifier.pxd
    void *changes  # Change: of descriptors at the forks, by descriptor and fork
    u64 n_changes
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


# A rename that succeeded: its two halves.
cdef struct Renamed:
    const Event *before
    const Event *event


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
    Buffer renamed  # Renamed
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
    Buffer moved  # Moved, see directories.pxd
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
