# SPDX-License-Identifier: Apache-2.0
# Distinct strings of a trace: the same few hundred paths come again and again.
from libetrace.core.memory cimport Arena
from libetrace.core.scan cimport etrace_equal, etrace_keyed_hash
from libetrace.core.types cimport u32, u64

cdef enum:
    NO_NAME = 0xffffffff


cdef struct Name:
    const char *bytes  # followed by ETRACE_PAD bytes, the first of them null
    u32 len
    u32 hash
    bint has_newline
    bint is_pipe  # it has the form of a pipe's link in /proc/N/fd
    bint wants_stat  # by lstat


cdef struct Slot:
    u32 hash
    u32 number  # of the name, plus one; 0 for an empty slot


cdef struct Names:
    Arena arena
    Name *all
    u32 n
    u32 cap
    Slot *slots
    u32 mask
    u64 seed


# A random number that no input can know, for names_init().
cdef u64 names_seed() noexcept nogil
cdef int names_init(Names *names, u64 seed) noexcept nogil
cdef void names_free(Names *names) noexcept nogil
cdef u32 names_add(Names *names, const char *bytes, size_t len, u32 hash) noexcept nogil

# Number of the name, NO_NAME when it is new.
cdef inline u32 names_find(const Names *names, const char *bytes, size_t len,
                           u32 hash) noexcept nogil:
    cdef u32 at = hash & names.mask
    cdef const Name *name
    while names.slots[at].number:
        if names.slots[at].hash == hash:
            name = &names.all[names.slots[at].number - 1]
            if name.len == len and etrace_equal(name.bytes, bytes, len):
                return names.slots[at].number - 1
        at = (at + 1) & names.mask
    return NO_NAME


# Number of the name, known before or not; NO_NAME when there is no memory.
cdef inline u32 names_intern(Names *names, const char *bytes, size_t len) noexcept nogil:
    cdef u32 hash = <u32>etrace_keyed_hash(bytes, len, names.seed)
    cdef u32 number = names_find(names, bytes, len, hash)
    return number if number != NO_NAME else names_add(names, bytes, len, hash)
