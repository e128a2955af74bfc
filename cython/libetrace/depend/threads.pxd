# SPDX-License-Identifier: Apache-2.0
# Threads belong to the execution that cloned them.
from cpython cimport array

from libetrace.image.columns cimport Columns
from libetrace.core.types cimport s32, s64, u8


cdef array.array owners_of(Columns columns)
# One byte for each execution: it or a thread of it started a process.
cdef bytearray parents_of(Columns columns, array.array owner)
