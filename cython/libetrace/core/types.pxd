# SPDX-License-Identifier: Apache-2.0
# Integer widths under the names that the C sources of etrace use; letters of keys in `.nfsdb.json`.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef uint8_t u8
ctypedef uint16_t u16
ctypedef uint32_t u32
ctypedef uint64_t u64
ctypedef int8_t s8
ctypedef int16_t s16
ctypedef int32_t s32
ctypedef int64_t s64

cdef extern from "<stdint.h>" nogil:
    const uint32_t UINT32_MAX
    const int64_t INT64_MAX

# The kinds of changes: kind K (descriptors.pxd) is the letter CHANGE_LETTERS[K - 1]. The columns of the
# table `usage`, in their order.
cdef extern from *:
    """
    static const char etrace_change_letters[] = "erlsgfx";
    static const char etrace_usage_letters[] = "usmrwvf";
    """
    const char *CHANGE_LETTERS "etrace_change_letters"
    const char *USAGE_LETTERS "etrace_usage_letters"

cdef enum:
    N_CHANGES = 7
    N_USAGE = 7
    MAX_RSS = 2  # the only one of `usage` that is a maximum
