# SPDX-License-Identifier: Apache-2.0
# The reader's output: events in one chain for each upid, in chunks of the trace.
from libetrace.trace.events cimport ETRACE_MAX_DATA
from libetrace.core.memory cimport Arena, Buffer
from libetrace.core.interned cimport Names
from libetrace.trace.report cimport Report
from libetrace.core.usage cimport N_USAGE
from libetrace.core.types cimport s32, s64, u8, u16, u32, u64

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
    s64 number  # SchedFork: child; SysClone: flags; Exit: status; UPID: upid
    Program *program
    MountCall *mount
    UsageSums *usage


cdef struct Event:
    s64 time
    Event *next
    Payload payload
    s32 fd  # Open, Close; Pipe: fd1; Dup: oldfd; Symlink, UPID: number of the name of its text
    s32 fd2  # Pipe: fd2; Dup: newfd
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
