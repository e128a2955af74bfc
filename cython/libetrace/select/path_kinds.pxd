# SPDX-License-Identifier: Apache-2.0
# What post-processing says of executions and paths.
from libetrace.image.mapped cimport Mapped
from libetrace.core.types cimport s32, s64, u8, u16, u64

# Kinds of a path; several may hold.
cdef enum:
    IS_COMPILED = 0x01  # a source
    IS_OBJECT = 0x02
    IS_ARCHIVE = 0x04
    IS_EXECUTABLE = 0x08
    IS_SHARED = 0x10
    IS_PARTIAL = 0x20  # ld -r
    IS_LINKED = 0x3C
    IS_BINARY = 0x40  # was executed
    IS_COMPILER = 0x80
    IS_LINKER = 0x100

# Languages as which a source was compiled; several may hold.
cdef enum:
    SOURCE_C = 1
    SOURCE_CXX = 2
    SOURCE_OTHER = 4


cdef s64 compilation_of(Mapped columns, u64 execution) noexcept nogil
cdef s64 linked_of(Mapped columns, u64 execution) noexcept nogil
cdef s64 find_maker(Mapped columns, u64 open) except? -2
cdef PathKinds path_kinds(Mapped columns)


cdef class PathKinds:
    cdef bytearray memory  # of the three
    cdef u16 *kinds  # by path: IS_..
    cdef u8 *sources  # by path: SOURCE_..
    cdef s32 *makers  # by path: last execution that linked, made or compiled it, or NONE
    cdef u64 n_paths

    cdef int fill(self, Mapped columns) except -1
