# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The content of a file as 64 bits, at the speed of reading it.

It tells a file that was changed or replaced from the one that was seen before. It is no proof
against somebody who makes a file for the same digest, who could set its times as well.
"""
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EINTR, errno
from libc.stdlib cimport free, malloc

from libetrace.core.scan cimport ETRACE_PAD, etrace_hash
from libetrace.core.types cimport u64

cdef extern from "<unistd.h>" nogil:
    ssize_t read(int fd, void *buffer, size_t size)

cdef enum:
    BLOCK_BYTES = 1 << 20


# Fills a block as far as the file goes; -1 sets errno.
cdef ssize_t read_block(int fd, char *block) noexcept nogil:
    cdef ssize_t filled = 0
    cdef ssize_t n
    while filled < BLOCK_BYTES:
        n = read(fd, block + filled, BLOCK_BYTES - filled)
        if n < 0 and errno == EINTR:
            continue
        if n < 0:
            return -1
        if n == 0:
            break
        filled += n
    return filled


cdef u64 digest_blocks(int fd, char *block) except? 0:
    cdef u64 digest = 0
    cdef ssize_t n
    while True:
        with nogil:
            n = read_block(fd, block)
            if n > 0:
                digest = etrace_hash(block, n, digest)
        if n < 0:
            PyErr_SetFromErrno(OSError)
        PyErr_CheckSignals()
        if n < BLOCK_BYTES:
            return digest


def digest_file(int fd):
    """Return the digest of a file's content from its position on. OSError."""
    cdef char *block = <char *>malloc(BLOCK_BYTES + ETRACE_PAD)
    if block == NULL:
        raise MemoryError
    try:
        return f"{digest_blocks(fd, block):016x}"
    finally:
        free(block)
