# SPDX-License-Identifier: Apache-2.0
# Walks from files over who wrote them to what those read, and on; nearest first.
from libetrace.depend.content_trees cimport ContentTrees
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.depend.uses cimport Ends, UseLists

cdef enum:
    NO_ITEM = 0xFFFFFFFF


# A pipe, in the list of the process that is left through it.
cdef struct Pipe:
    u32 target  # process
    u32 own  # execution
    u32 other  # execution


cdef struct Edges:
    UseLists by_path
    UseLists by_process
    Ends ends
    ContentTrees trees  # of by_path
    bint is_mirrored
    u64 *pipe_start  # n_processes + 1
    Pipe *pipes


# What may be passed: bytes by path or execution, NULL for none.
cdef struct Rules:
    const u8 *stops  # paths that are listed and not left
    const u8 *modules  # the same, but a walk leaves those it begins with
    const u8 *excluded  # executions that are not entered
    bint is_ordered
    bint has_pipes


cdef enum Kind:
    BY_ROOT
    BY_USE  # a process through a use in by_path, or a path through one in by_process
    BY_PIPE  # a process


# A visit: of a path, whose uses count up to `limit`, or of a process.
cdef struct Item:
    s64 limit
    u32 id  # path or process
    u32 node  # of the path
    u32 parent  # item, NO_ITEM for a root
    u64 edge  # in the list that `kind` names
    u8 is_process
    u8 kind


# State of a path with one content or process in the walk of this number.
cdef struct Mark:
    u32 walk
    u64 place  # in its list: what comes before is done
    s64 limit  # of the pipes that are done


# A use that was taken out of the tree of its path.
cdef struct Taken:
    u64 use
    u32 path


# `listed`, `rooted` and `via` are by path; the others grow.
cdef struct Walk:
    const Edges *edges
    Rules rules
    u32 number
    Mark *paths
    ContentTrees trees  # what is left in by_path of the other paths
    Buffer taken  # Taken, out of them
    Mark *processes
    u32 *listed  # number of the walk
    u32 *rooted
    u64 *via_use  # first one, in by_process
    u32 *via_item  # of its process
    Buffer items  # Item
    Buffer found  # u32 paths, each once
    Buffer entered  # u64 in by_path
    Buffer left  # u64 in by_process


cdef int walk_init(Walk *walk, const Edges *edges) noexcept nogil
cdef void walk_free(Walk *walk) noexcept nogil
# From these paths; `rules` is set. -1: no memory.
cdef int walk_from(Walk *walk, const u32 *roots, size_t n_roots) noexcept nogil
