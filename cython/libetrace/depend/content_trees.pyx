# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Lists of uses in order of time -> the first of them that counts for a content, in log n steps.

What a content was made of is not the beginning of a list: a log that one command writes for hours
may be emptied by others a thousand times. Whatever order contents are asked for in, each use is
found once, since who finds it takes it out.
"""
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset


cdef inline u32 n_uses(const UseLists *by_path, u32 path) noexcept nogil:
    return <u32>(by_path.start[path + 1] - by_path.start[path])


# Leaves of the tree of a path: a power of two.
cdef inline u32 n_leaves(const UseLists *by_path, u32 path) noexcept nogil:
    cdef u32 n = 1
    while n < n_uses(by_path, path):
        n *= 2
    return n


cdef u32 value_of(const Ends *ends, const UseLists *by_path, u32 path, u64 use) noexcept nogil:
    return by_path.uses[use].node - ends.first[path] + 1


cdef void fill_tree(u32 *tree, const Ends *ends, const UseLists *by_path, u32 path) noexcept nogil:
    cdef u32 leaves = n_leaves(by_path, path)
    cdef u32 i
    for i in range(n_uses(by_path, path)):
        tree[leaves + i] = value_of(ends, by_path, path, by_path.start[path] + i)
    i = leaves - 1
    while i:
        tree[i] = max(tree[2 * i], tree[2 * i + 1])
        i -= 1


cdef int trees_init(ContentTrees *trees, const Ends *ends, const UseLists *by_path) noexcept nogil:
    cdef u32 path
    trees.n = 0
    trees.at = <u64 *>calloc(<size_t>ends.n_paths + 1, sizeof(u64))
    if trees.at == NULL:
        return -1
    for path in range(ends.n_paths):
        if ends.first[path + 1] - ends.first[path] > 1:
            trees.at[path] = trees.n
            trees.n += 2 * <u64>n_leaves(by_path, path)
    trees.trees = <u32 *>calloc(trees.n + 1, sizeof(u32))
    if trees.trees == NULL:
        return -1
    for path in range(ends.n_paths):
        if ends.first[path + 1] - ends.first[path] > 1:
            fill_tree(trees.trees + trees.at[path], ends, by_path, path)
    return 0


cdef void trees_free(ContentTrees *trees) noexcept nogil:
    free(trees.at)
    free(trees.trees)
    memset(trees, 0, sizeof(trees[0]))


cdef int trees_copy(ContentTrees *trees, const ContentTrees *source) noexcept nogil:
    trees[0] = source[0]
    trees.trees = <u32 *>malloc((source.n + 1) * sizeof(u32))
    if trees.trees == NULL:
        return -1
    memcpy(trees.trees, source.trees, source.n * sizeof(u32))
    return 0


cdef u64 trees_find(const ContentTrees *trees, const Ends *ends, const UseLists *by_path, u32 path,
                    u32 node) noexcept nogil:
    cdef const u32 *tree = trees.trees + trees.at[path]
    cdef u32 wanted = node - ends.first[path] + 1
    cdef u32 leaves = n_leaves(by_path, path)
    cdef u32 at = 1
    if tree[1] < wanted:
        return by_path.start[path + 1]
    while at < leaves:
        at *= 2
        at += tree[at] < wanted
    return by_path.start[path] + (at - leaves)


cdef void trees_set(ContentTrees *trees, const UseLists *by_path, u32 path, u64 use,
                    u32 value) noexcept nogil:
    cdef u32 *tree = trees.trees + trees.at[path]
    cdef u32 at = n_leaves(by_path, path) + <u32>(use - by_path.start[path])
    tree[at] = value
    at /= 2
    while at:
        tree[at] = max(tree[2 * at], tree[2 * at + 1])
        at /= 2
