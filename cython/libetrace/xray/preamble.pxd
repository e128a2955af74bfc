# SPDX-License-Identifier: Apache-2.0
# How the buffers of a Flight Data Recorder log begin, in a sound log and in a damaged one.
from libetrace.core.types cimport u8, u64
from libetrace.xray.records cimport Header


# Is `at` a repeated header, an extents record?
cdef bint is_header(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil
cdef bint has_extents(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil
# A correct extents record, or any extents record that a preamble follows.
cdef bint is_buffer(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil
# The records that begin a buffer, all of them.
cdef bint is_preamble(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil
# So many of them that at the end of a record this can be nothing else.
cdef bint may_begin(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil
# The next place where a buffer, a preamble, or either begins; the end of the file when there is none.
cdef u64 find_buffer(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil
cdef u64 find_preamble(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil
cdef u64 find_beginning(const Header *header, const u8 *data, u64 at, u64 size) noexcept nogil
# Pass over records up to the first one at or behind `stop`, to where another buffer begins, or to `end`
# when nothing sound follows.
cdef u64 pass_records(const Header *header, const u8 *data, u64 at, u64 stop, u64 end) noexcept nogil
