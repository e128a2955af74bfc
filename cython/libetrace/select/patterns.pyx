# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Command patterns to bits: which of many globs match each command line.

The meaning of a pattern is that of fnmatch(pattern, string, 0) in glibc's C locale (cython/glob-engine
has the engine, docs/postprocess.md the rules). Bits are those of "n" in `.nfsdb.json`: pattern i is
0x80 >> i % 8 of byte i / 8, ceil(n / 8) bytes a row.
"""
from array import array

from libc.errno cimport E2BIG, EINTR, EINVAL, ENAMETOOLONG, ENOMEM, EOVERFLOW
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from libetrace.core.types cimport u8, u32, u64

from libetrace.core.errors import PatternError
from libetrace.select.commands import check_length, shown

cdef extern from "Python.h":
    int PyErr_CheckSignals() noexcept

cdef extern from "glob.h" nogil:
    const u32 ETRACE_GLOB_PAD
    const u32 GLOB_OPEN_MAX
    const u32 GLOB_ODD_BYTES_MAX
    bint (*glob_interrupted)() noexcept nogil

    struct glob:
        pass

    struct globs:
        u32 n
        glob *globs

    int globs_init(globs *self, const u8 **patterns, const size_t *lens, u32 n)
    void globs_deinit(globs *self)
    void glob_begin()
    bint glob_work(size_t steps)
    bint glob_match(const globs *self, const glob *one, const u8 *text, size_t len)

    struct rows:
        const u64 *strings
        u64 n_strings
        const u8 *bytes
        u64 n_bytes
        const u64 *argv
        u64 n
        const u32 *arguments
        u64 n_arguments

    int match_rows(const globs *patterns, const rows *which, u8 *bits)

N_PATTERNS_MAX = 1 << 24


cdef bint is_interrupted() noexcept with gil:
    return PyErr_CheckSignals() != 0


glob_interrupted = is_interrupted


# -EINTR: the handler of a signal has raised already.
cdef int check(int status) except -1:
    if status == -EINTR:
        return -1
    if status == -ENOMEM:
        raise MemoryError
    if status == -EOVERFLOW:
        raise ValueError("a command line is longer than 4 GiB")
    if status == -EINVAL:
        raise ValueError("offsets that do not ascend, or lie outside their column")
    return 0


cdef int check_pattern(int status, bytes pattern) except -1:
    if status == -E2BIG:
        raise PatternError(
            f"the pattern {shown(pattern)} has more than {GLOB_OPEN_MAX} `[` that nothing closes",
            "write \\[ for the character itself",
        )
    if status == -ENAMETOOLONG:
        raise PatternError(
            f"the pattern {shown(pattern)} has {len(pattern):,} bytes and an ill-formed bracket; "
            f"such a pattern may have {GLOB_ODD_BYTES_MAX}", "write \\[ for the character itself",
        )
    return check(status)


cdef bytes encoded(text):
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)


cdef list encoded_patterns(patterns):
    cdef list found = [encoded(pattern) for pattern in patterns]
    if len(found) > N_PATTERNS_MAX:
        raise ValueError(f"{len(found)} patterns; {N_PATTERNS_MAX} at most")
    for i, pattern in enumerate(found):
        if b"\0" in pattern:
            raise ValueError(f"pattern {i} holds a NUL byte")
        check_length(pattern)
    return found


cdef class PatternSet:
    """Patterns, compiled once; it does not change and may be used by several threads."""

    cdef globs globs
    cdef readonly tuple patterns

    def __cinit__(self, patterns):
        cdef list found = encoded_patterns(patterns)
        cdef u32 n = <u32>len(found)
        cdef const u8 **texts = <const u8 **>malloc((n + 1) * sizeof(u8 *))
        cdef size_t *lens = <size_t *>malloc((n + 1) * sizeof(size_t))
        cdef int status = -ENOMEM
        cdef u32 i
        self.patterns = tuple(found)
        if texts != NULL and lens != NULL:
            for i in range(n):
                texts[i] = <const u8 *><const char *><bytes>found[i]
                lens[i] = <size_t>len(<bytes>found[i])
            glob_begin()
            status = globs_init(&self.globs, texts, lens, n)
        free(texts)
        free(lens)
        check_pattern(status, found[self.globs.n - 1] if self.globs.n else b"")

    def __dealloc__(self):
        globs_deinit(&self.globs)

    def __len__(self):
        return self.globs.n

    @property
    def row_bytes(self):
        """Bytes of the bits of one row: ceil(n patterns / 8)."""
        return (self.globs.n + 7) // 8

    def match(self, const u8[::1] text):
        """Return the bits of one text, `row_bytes` long. MemoryError."""
        cdef bytearray bits = bytearray(self.row_bytes)
        cdef u8[::1] out = bits
        cdef size_t n = <size_t>text.shape[0]
        cdef u8 *padded = <u8 *>malloc(n + ETRACE_GLOB_PAD)
        cdef bint goes_on
        cdef u32 i
        if padded == NULL:
            raise MemoryError
        if n:
            memcpy(padded, &text[0], n)
        memset(padded + n, 0, ETRACE_GLOB_PAD)
        glob_begin()
        with nogil:
            for i in range(self.globs.n):
                if glob_match(&self.globs, &self.globs.globs[i], padded, n):
                    out[i // 8] |= <u8>(0x80 >> i % 8)
            goes_on = glob_work(0)
        free(padded)
        check(0 if goes_on else -EINTR)
        return bytes(bits)

    def match_rows(
        self,
        const u64[::1] strings_start,
        const u8[::1] strings_bytes,
        const u64[::1] argv_start,
        const u32[::1] arguments,
        out=None,
    ):
        """Return the bits of rows of argv, `row_bytes` for each, one after the other.

        String i is strings_bytes[strings_start[i]:strings_start[i + 1]]; row r is the strings
        arguments[argv_start[r]:argv_start[r + 1]] with one space between. Both `start`s have one
        element more than there are strings or rows; a slice of `argv_start` takes some rows.
        `out` (a writable buffer of as many bytes) is filled and returned instead of a new
        bytearray. Releases the GIL. ValueError for offsets outside their column, MemoryError.
        """
        cdef rows which
        cdef u8[::1] bits
        cdef size_t n_bits
        cdef int status
        if not len(strings_start) or not len(argv_start):
            raise ValueError("offsets need one element more than there are rows")
        which.strings = &strings_start[0]
        which.n_strings = <u64>strings_start.shape[0] - 1
        which.bytes = &strings_bytes[0] if strings_bytes.shape[0] else NULL
        which.n_bytes = <u64>strings_bytes.shape[0]
        which.argv = &argv_start[0]
        which.n = <u64>argv_start.shape[0] - 1
        which.arguments = &arguments[0] if arguments.shape[0] else NULL
        which.n_arguments = <u64>arguments.shape[0]
        n_bits = which.n * self.row_bytes
        if out is None:
            out = bytearray(n_bits)
        bits = out
        if <size_t>bits.shape[0] != n_bits:
            raise ValueError(f"out has {bits.shape[0]} bytes; the rows need {n_bits}")
        if not n_bits:
            return out
        with nogil:
            memset(&bits[0], 0, n_bits)
            status = match_rows(&self.globs, &which, &bits[0])
        check(status)
        return out


cdef class Argvs:
    """Command lines to columns: every different argument once."""

    cdef dict rows
    cdef object start, bytes, argv, arguments

    def __cinit__(self):
        self.rows = {}
        self.start = array("Q", [0])
        self.bytes = bytearray()
        self.argv = array("Q", [0])
        self.arguments = array("I")

    cdef int add(self, argv) except -1:
        for argument in argv:
            row = self.rows.get(argument)
            if row is None:
                row = self.rows[argument] = len(self.rows)
                self.bytes += encoded(argument)
                self.start.append(len(self.bytes))
            self.arguments.append(row)
        self.argv.append(len(self.arguments))
        return 0


def precompute_command_patterns(patterns, processes):
    """Return which patterns match each execution: {(pid, i): bits}; None without patterns.

    `processes` is {pid: executions}, each execution a mapping with its argv under "v" (a missing
    one is empty); i counts them from 0. Text is str (non-UTF-8 bytes by surrogateescape) or bytes.
    A pattern is matched against the argv joined by one space.
    """
    cdef PatternSet compiled = PatternSet(patterns)
    cdef Argvs argvs = Argvs()
    cdef list keys = []
    cdef bytes bits
    cdef size_t n = compiled.row_bytes
    if not n:
        return None
    for pid, executions in processes.items():
        for i, execution in enumerate(executions):
            keys.append((pid, i))
            argvs.add(execution.get("v", ()))
    bits = bytes(compiled.match_rows(argvs.start, argvs.bytes, argvs.argv, argvs.arguments))
    return {key: bits[row * n:(row + 1) * n] for row, key in enumerate(keys)}
