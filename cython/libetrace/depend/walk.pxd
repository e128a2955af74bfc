# SPDX-License-Identifier: Apache-2.0
# Walks from files over who wrote them to what those read, and on.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.depend.uses cimport Ends, Uses

cdef enum:
    NO_ITEM = 0xFFFFFFFF
    OUT_OF_MEMORY = -1
    DAMAGED = -2
    NO_TIME = -1


# Rows of uses, one list for each owner: use[start[i]:start[i + 1]].
cdef struct UseLists:
    const u64 *start
    const u32 *use
    u64 n


# The graph where it lies: nothing in it was checked but the lengths of columns.
cdef struct Edges:
    Uses uses
    Ends ends
    UseLists by_path
    UseLists by_process
    const u64 *pipe_start  # by process: pipes and forks
    const u32 *pipe_own  # executions
    const u32 *pipe_other
    const u32 *pipe_process  # of `pipe_other`
    const s64 *pipe_time  # of a fork, NO_TIME for a pipe
    u64 n_pipes
    u32 n_paths
    u32 n_executions
    u32 n_processes
    bint is_mirrored


# What may be passed: bytes by path or execution, NULL for none.
cdef struct Rules:
    const u8 *stops  # paths that are listed and not left
    const u8 *modules  # the same, but a walk leaves those it begins with
    const u8 *excluded  # executions that are not entered
    bint is_ordered
    bint has_pipes
    bint is_nearest  # the fewest steps, and the limit of a use is its own end alone


cdef enum Kind:
    BY_ROOT
    BY_USE  # a process through a use of a path, or a path through one of a process
    BY_PIPE  # a process
    BY_FORK  # a process


# A visit: of a path, whose uses count up to `limit`, or of a process.
cdef struct Item:
    s64 limit
    u64 edge  # row of a use, or of a pipe or fork
    u32 id  # path or process
    u32 content  # of the path
    u32 parent  # item, NO_ITEM for a root
    u8 is_process
    u8 kind


# How much of its lists a process has done.
cdef struct Done:
    s64 pipe_limit
    u32 n_uses
    bint has_pipes


# One walk. Arrays are by path or process and zero at first: memory that is not touched costs none.
cdef struct Walk:
    const Edges *edges
    Rules rules
    bint is_damaged
    void *arrays  # those up to `processes`
    size_t n_bytes  # of them
    u32 *n_done  # of the uses of a path with one content
    u64 *tree_at  # place in `trees` + 1, of a path with several
    u8 *is_listed
    u8 *is_root
    u32 *via_use  # first one that listed a path
    u32 *via_item  # of its process
    Done *processes
    Buffer trees  # u32
    Buffer items  # Item: they stay, as the proof
    Buffer waiting  # u32 numbers of items: a heap, the greatest limit first
    Buffer found  # u32 paths, each once
    Buffer entered  # u32 rows of uses
    Buffer left  # u32 rows of uses


cdef int walk_init(Walk *walk, const Edges *edges) noexcept nogil
cdef void walk_free(Walk *walk) noexcept nogil
# From these paths, once; `rules` is set. OUT_OF_MEMORY, or DAMAGED for rows that do not exist.
cdef int walk_from(Walk *walk, const u32 *roots, size_t n_roots) noexcept nogil
