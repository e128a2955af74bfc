# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Hashes of files and commands.

`digest_file`: the content of a file as 64 bits, at the speed of reading it. It distinguishes a file
that was changed or replaced from the one that was seen before. It is not a proof against somebody who
makes a file for the same digest, who could set its times as well.

The others are the numbers by which ninja's log knows a command line. Sources: MurmurHash64A by Austin
Appleby, with the seed of ninja's build_log.cc (logs of version 5 and 6); rapidhash 1 by Nicolas De
Carli, with its own seed and secrets (version 7). Both read words as a little-endian CPU does, as
ninja's own file is not carried to another machine.
"""
from libc.string cimport memcpy

from libetrace.core.scan cimport ETRACE_PAD, etrace_hash
from libetrace.core.types cimport u8, u64

cdef enum:
    BLOCK_BYTES = 1 << 20


def digest_file(int fd):
    """Return the digest of a file's content from its position on. OSError."""
    cdef bytearray block = bytearray(BLOCK_BYTES + ETRACE_PAD)
    cdef const char *data = block
    cdef Py_ssize_t n = BLOCK_BYTES
    cdef u64 digest = 0
    with open(fd, "rb", closefd=False) as stream, memoryview(block)[:BLOCK_BYTES] as view:
        while n == BLOCK_BYTES:
            n = stream.readinto(view)
            if n:
                with nogil:
                    digest = etrace_hash(data, n, digest)
    return f"{digest:016x}"


# ---- commands of ninja's log ----


cdef extern from *:
    """
    /* a and b become the low and high half of their product */
    static inline void etrace_multiply(uint64_t *a, uint64_t *b)
    {
        __extension__ unsigned __int128 product = (unsigned __int128)*a * *b;

        *a = (uint64_t)product;
        *b = (uint64_t)(product >> 64);
    }
    """
    void etrace_multiply(u64 *a, u64 *b) noexcept nogil

cdef u64 MURMUR_SEED = 0xDECAFBADDECAFBAD
cdef u64 MURMUR_FACTOR = 0xc6a4a7935bd1e995
cdef u64 RAPID_SEED = 0xbdd89aa982704029
cdef u64 SECRET_0 = 0x2d358dccaa6c78a5
cdef u64 SECRET_1 = 0x8bb84b93962eacc9
cdef u64 SECRET_2 = 0x4b33a62ed433d4a3


cdef inline u64 read_8(const u8 *at) noexcept nogil:
    cdef u64 out
    memcpy(&out, at, 8)
    return out


cdef inline u64 read_4(const u8 *at) noexcept nogil:
    return <u64>at[0] | <u64>at[1] << 8 | <u64>at[2] << 16 | <u64>at[3] << 24


cdef u64 murmur(const u8 *at, size_t n) noexcept nogil:
    cdef u64 hash = MURMUR_SEED ^ (<u64>n * MURMUR_FACTOR)
    cdef u64 word
    cdef size_t i
    while n >= 8:
        word = read_8(at) * MURMUR_FACTOR
        word ^= word >> 47
        hash = (hash ^ (word * MURMUR_FACTOR)) * MURMUR_FACTOR
        at += 8
        n -= 8
    if n:
        for i in range(n):
            hash ^= <u64>at[i] << 8 * i
        hash *= MURMUR_FACTOR
    hash = (hash ^ (hash >> 47)) * MURMUR_FACTOR
    return hash ^ (hash >> 47)


cdef inline u64 mix(u64 a, u64 b) noexcept nogil:
    etrace_multiply(&a, &b)
    return a ^ b


cdef inline u64 mix_16(const u8 *at, u64 secret, u64 seed) noexcept nogil:
    return mix(read_8(at) ^ secret, read_8(at + 8) ^ seed)


# The two words of a text of up to 16 bytes.
cdef void read_short(const u8 *at, size_t n, u64 *a, u64 *b) noexcept nogil:
    cdef size_t delta
    if n >= 4:
        delta = (n & 24) >> (n >> 3)
        a[0] = read_4(at) << 32 | read_4(at + n - 4)
        b[0] = read_4(at + delta) << 32 | read_4(at + n - 4 - delta)
    elif n:
        a[0] = <u64>at[0] << 56 | <u64>at[n >> 1] << 32 | at[n - 1]


# Takes blocks of 48 bytes and returns how many bytes they were.
cdef size_t mix_blocks(const u8 *at, size_t n, u64 *seed) noexcept nogil:
    cdef u64 second = seed[0]
    cdef u64 third = seed[0]
    cdef size_t done = 0
    while n - done >= 48:
        seed[0] = mix_16(at + done, SECRET_0, seed[0])
        second = mix_16(at + done + 16, SECRET_1, second)
        third = mix_16(at + done + 32, SECRET_2, third)
        done += 48
    seed[0] ^= second ^ third
    return done


cdef u64 rapid(const u8 *at, size_t n) noexcept nogil:
    cdef u64 seed = RAPID_SEED ^ mix(RAPID_SEED ^ SECRET_0, SECRET_1) ^ n
    cdef u64 a = 0
    cdef u64 b = 0
    cdef size_t done = 0
    if n <= 16:
        read_short(at, n, &a, &b)
    else:
        if n > 48:
            done = mix_blocks(at, n, &seed)
        if n - done > 16:
            seed = mix_16(at + done, SECRET_2, seed ^ SECRET_1)
        if n - done > 32:
            seed = mix_16(at + done + 16, SECRET_2, seed)
        a = read_8(at + n - 16)
        b = read_8(at + n - 8)
    a ^= SECRET_1
    b ^= seed
    etrace_multiply(&a, &b)
    return mix(a ^ SECRET_0 ^ n, b ^ SECRET_1)


def murmur_hash(bytes command not None):
    """Return the hash of a command in logs of version 5 and 6, 0 to 2**64 - 1."""
    return murmur(<const u8 *><const char *>command, len(command))


def rapid_hash(bytes command not None):
    """Return the hash of a command in logs of version 7, 0 to 2**64 - 1."""
    return rapid(<const u8 *><const char *>command, len(command))
