# SPDX-License-Identifier: Apache-2.0
# The columns of an open image as C arrays. Nothing is checked when an image is opened: whoever
# takes a row number out of a column checks it, by the functions below or in the loop of a kernel.
from libetrace.core.types cimport s64, u64
from libetrace.core.usage cimport N_USAGE
from libetrace.image.columns cimport S2, S4, S8, U1, U4, U8, Columns

cdef enum:
    NONE = -1

# Elements [first, last) of the table that a column `X.start` points into.
cdef struct Span:
    u64 first
    u64 last

# Bytes of a string; `data` is NULL when the string does not exist.
cdef struct Text:
    const char *data
    Py_ssize_t len


cdef class Mapped:
    cdef readonly object image
    cdef Columns columns  # keep the mapping alive whatever becomes of `image`
    cdef object kinds  # PathKinds of libetrace.select.path_kinds, when it was asked for
    cdef u64 n_executions
    cdef u64 n_opens
    cdef u64 n_paths
    cdef u64 n_strings  # those of products included
    cdef U8 string_start
    cdef U1 string_bytes
    cdef U8 added_start
    cdef U1 added_bytes
    cdef U4 path_string
    cdef U1 path_mode
    cdef U8 path_opens_start
    cdef U4 path_open
    cdef S8 upid
    cdef S4 index
    cdef S8 start_ns
    cdef S8 elapsed_ns
    cdef S4 parent
    cdef S4 binary
    cdef U4 cwd
    cdef S2 status
    cdef U8 argv_start
    cdef U8 opens_start
    cdef U8 children_start
    cdef U8 inherited_start
    cdef U8 readers_start
    cdef U8 cpus_start
    cdef U4 argument
    cdef U4 open_path
    cdef U4 open_original
    cdef S8 open_ns
    cdef S8 close_ns
    cdef S8 until_ns
    cdef U1 open_mode
    cdef S8 open_size
    cdef U4 open_execution
    cdef U4 change_open
    cdef U1 change_kind
    cdef S8 change_ns
    cdef S4 change_name
    cdef U4 use_open
    cdef S8 use_begin
    cdef S8 use_end
    cdef U1 use_mode
    cdef U1 inherited_descriptor
    cdef U4 inherited_path
    cdef U1 inherited_mode
    cdef S8 child_upid
    cdef U8 child_flags
    cdef S4 child_execution
    cdef U4 reader
    cdef U4 cpu
    cdef S8 cpu_ns
    cdef U4 linked_execution
    cdef U4 linked_path
    cdef U1 linked_type
    cdef U1 linked_kind
    cdef U4 compilation_execution
    cdef U4 compilation_language
    cdef U1 compilation_type
    cdef U1 compilation_is_child
    cdef U8 files_start
    cdef U8 includes_start
    cdef U8 definitions_start
    cdef U8 headers_start
    cdef U8 objects_start
    cdef U4 compiled_file
    cdef U4 include_folder
    cdef U4 definition_name
    cdef U4 definition_value
    cdef U1 definition_is_undef
    cdef U4 header
    cdef U4 compiled_object
    cdef S8 usage[N_USAGE]
    cdef S4 wrapper
    cdef U1 target_kind
    cdef S4 target_outer
    cdef U8 target_names_start
    cdef U4 target_name
    cdef S4 target
    cdef U4 pattern
    cdef U1 pattern_bits

    cdef int bind(self, object image) except -1
    cdef int check(self) except -1
    cdef object broken(self, str column, s64 row, s64 value)
    cdef Text text(self, u64 string) noexcept nogil
    cdef str decode(self, u64 string)
    cdef str decode_path(self, u64 path)
    cdef int span(self, const U8 *start, u64 row, u64 n, Span *out) except -1
    cdef s64 find_string(self, const char *text, Py_ssize_t n_bytes) noexcept nogil
    cdef s64 find_path_of_string(self, u64 string) noexcept nogil
    cdef s64 find_path(self, const char *text, Py_ssize_t n_bytes) noexcept nogil
    cdef s64 find_execution(self, s64 upid, s64 index) noexcept nogil
    cdef object execution(self, s64 row)
    cdef object open(self, u64 row)


# Whether [start[row], start[row + 1]) lies in a table of n rows.
cdef inline bint get_span(const U8 *start, u64 row, u64 n, Span *out) noexcept nogil:
    if row + 1 >= start.n:
        out.first = out.last = 0
        return False
    out.first = start.at[row]
    out.last = start.at[row + 1]
    if out.first <= out.last <= n:
        return True
    out.first = out.last = 0
    return False
