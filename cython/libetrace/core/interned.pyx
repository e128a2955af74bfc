# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A hash table of strings, open addressing, half full at most; strings are copied to an arena."""
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from libetrace.core.limits cimport STRINGS, STRING_BYTES, ceilings, pass_limit
from libetrace.core.memory cimport arena_free, arena_take
from libetrace.core.scan cimport ETRACE_PAD

cdef extern from "<sys/random.h>" nogil:
    enum: GRND_NONBLOCK
    ssize_t getrandom(void *bytes, size_t size, unsigned int flags)

cdef enum:
    FIRST_SLOTS = 1024
    NS_PER_SECOND = 1000000000


# Early at boot the kernel may lack random bytes: nobody waits for them.
cdef u64 names_seed() noexcept nogil:
    cdef u64 seed = 0
    cdef timespec now
    if getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed):
        clock_gettime(CLOCK_MONOTONIC, &now)
        seed = <u64>now.tv_sec * NS_PER_SECOND + <u64>now.tv_nsec ^ <u64>&now
    return seed


cdef int names_init(Names *names, u64 seed) noexcept nogil:
    memset(names, 0, sizeof(names[0]))
    names.seed = seed
    names.mask = FIRST_SLOTS - 1
    names.slots = <Slot *>calloc(FIRST_SLOTS, sizeof(Slot))
    names.cap = FIRST_SLOTS / 2
    names.all = <Name *>malloc(names.cap * sizeof(Name))
    if names.slots == NULL or names.all == NULL:
        names_free(names)
        return -1
    return 0


cdef void names_free(Names *names) noexcept nogil:
    free(names.slots)
    free(names.all)
    arena_free(&names.arena)
    memset(names, 0, sizeof(names[0]))


cdef void put_slot(Slot *slots, u32 mask, Slot slot) noexcept nogil:
    cdef u32 at = slot.hash & mask
    while slots[at].number:
        at = (at + 1) & mask
    slots[at] = slot


cdef int grow(Names *names) noexcept nogil:
    cdef u32 mask = names.mask * 2 + 1
    cdef Name *all_names
    cdef Slot *slots
    cdef u32 i
    all_names = <Name *>realloc(names.all, 2 * <size_t>names.cap * sizeof(Name))
    if all_names == NULL:
        return -1
    names.all = all_names
    slots = <Slot *>calloc(<size_t>mask + 1, sizeof(Slot))
    if slots == NULL:
        return -1
    for i in range(names.mask + 1):
        if names.slots[i].number:
            put_slot(slots, mask, names.slots[i])
    free(names.slots)
    names.slots = slots
    names.mask = mask
    names.cap *= 2
    return 0


# `pipe:[inode]`, with the directory it was read in or without.
cdef bint is_pipe(const char *bytes, size_t len) noexcept nogil:
    cdef size_t at = 0
    if len > 6 and not memcmp(bytes, b"/proc/", 6):
        at = 6
        if not c'0' <= bytes[at] <= c'9':
            return False
        while c'0' <= bytes[at] <= c'9':
            at += 1
        if memcmp(bytes + at, b"/fd/", 4):
            return False
        at += 4
    return not memcmp(bytes + at, b"pipe:", 5)


# Whether one more name of this length may be added.
cdef bint is_within(const Names *names, size_t len) noexcept nogil:
    if len > ceilings[STRING_BYTES]:
        pass_limit(STRING_BYTES)
        return False
    if names.n >= ceilings[STRINGS]:
        pass_limit(STRINGS)
        return False
    return True


cdef u32 names_add(Names *names, const char *bytes, size_t len, u32 hash) noexcept nogil:
    cdef Name *name
    cdef char *copy
    cdef Slot slot
    if not is_within(names, len) or (names.n == names.cap and grow(names) < 0):
        return NO_NAME
    copy = <char *>arena_take(&names.arena, len + ETRACE_PAD)
    if copy == NULL:
        return NO_NAME
    memcpy(copy, bytes, len)
    memset(copy + len, 0, ETRACE_PAD)
    name = &names.all[names.n]
    name.bytes = copy
    name.len = <u32>len
    name.hash = hash
    name.has_newline = len > 0 and memchr(bytes, c'\n', len) != NULL
    name.is_pipe = is_pipe(copy, len)
    name.wants_stat = False
    names.n += 1
    slot.hash = hash
    slot.number = names.n
    put_slot(names.slots, names.mask, slot)
    return names.n - 1
