# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Lists of uses in order of time -> the first of them that counts for a content, in log n steps.

What a content was made of is not the beginning of a list: a log that one command writes for hours
may be emptied by others a thousand times. Whatever order contents are asked for in, each use is
found once, since who finds it takes it out. A walk makes the trees of the paths that it meets: the
leaves are in the order of the list, and a node holds the greatest value below it. The value of a
use is the last content that it counts for, counted from 1, and 0 when it was taken out.
"""
from libc.string cimport memset

from libetrace.core.memory cimport buffer_reserve
from libetrace.core.types cimport u64
from libetrace.depend.ends cimport content_of
from libetrace.depend.walk cimport OUT_OF_MEMORY, UseLists


cdef inline u32 n_uses(const Walk *walk, u32 path) noexcept nogil:
    return <u32>(walk.edges.by_path.start[path + 1] - walk.edges.by_path.start[path])


# Leaves of the tree of a path: a power of two.
cdef inline u64 n_leaves(const Walk *walk, u32 path) noexcept nogil:
    cdef u64 n = 1
    while n < n_uses(walk, path):
        n *= 2
    return n


cdef inline u32 *tree_of(const Walk *walk, u32 path) noexcept nogil:
    return <u32 *>walk.trees.data + (walk.tree_at[path] - 1)


# Of a use that does not exist: 0, as if it was taken out.
cdef inline u32 value_of(const Walk *walk, u32 path, u32 number) noexcept nogil:
    cdef const UseLists *lists = &walk.edges.by_path
    cdef u32 use = lists.use[lists.start[path] + number]
    if use >= walk.edges.uses.n:
        return 0
    if not walk.rules.is_ordered:
        return 1
    return 1 + content_of(&walk.edges.ends, &walk.edges.uses, use, path,
                          not walk.edges.is_mirrored, walk.edges.is_mirrored)


cdef int tree_build(Walk *walk, u32 path) noexcept nogil:
    cdef u64 leaves = n_leaves(walk, path)
    cdef size_t size = 2 * leaves * sizeof(u32)
    cdef u32 *tree
    cdef u64 i
    if buffer_reserve(&walk.trees, size) < 0:
        return OUT_OF_MEMORY
    walk.tree_at[path] = walk.trees.len / sizeof(u32) + 1
    walk.trees.len += size
    tree = tree_of(walk, path)
    memset(tree, 0, size)
    for i in range(n_uses(walk, path)):
        tree[leaves + i] = value_of(walk, path, <u32>i)
    i = leaves - 1
    while i:
        tree[i] = max(tree[2 * i], tree[2 * i + 1])
        i -= 1
    return 0


cdef u32 tree_find(const Walk *walk, u32 path, u32 content) noexcept nogil:
    cdef const u32 *tree = tree_of(walk, path)
    cdef u64 leaves = n_leaves(walk, path)
    cdef u64 wanted = <u64>content + 1  # never 0, the value of what was taken
    cdef u64 at = 1
    if tree[1] < wanted:
        return n_uses(walk, path)
    while at < leaves:
        at *= 2
        at += tree[at] < wanted
    return <u32>(at - leaves)


cdef void tree_take(Walk *walk, u32 path, u32 number) noexcept nogil:
    cdef u32 *tree = tree_of(walk, path)
    cdef u64 at = n_leaves(walk, path) + number
    tree[at] = 0
    at /= 2
    while at:
        tree[at] = max(tree[2 * at], tree[2 * at + 1])
        at /= 2
