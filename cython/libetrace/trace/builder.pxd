# SPDX-License-Identifier: Apache-2.0
# Entries of the database as text.
from libetrace.core.memory cimport Buffer
from libetrace.trace.trace cimport Trace
from libetrace.core.types cimport u32, u64

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass


# The file, written in ranges of processes: any thread makes the text, places are given in order.
cdef struct Output:
    int fd  # -1: into `text`
    Buffer text
    u64 offset
    u64 turn  # range whose place comes next
    int error  # errno
    u32 *ranges  # first process of each, and the end
    u64 n_ranges
    u32 first_process  # that has an entry
    u64 split_bytes  # 0: never
    u64 n_entries
    u64 n_files
    Buffer *records  # of grouped processes, by process; NULL without groups
    pthread_mutex_t lock
    pthread_cond_t moved


cdef struct Job:
    Trace *trace
    Output *output


cdef int output_init(Output *output, Trace *trace, int fd, u64 split_bytes) noexcept nogil
cdef void output_free(Output *output, Trace *trace) noexcept nogil
# Builds ranges until none is left; called by every thread. -1: no memory, or output.error is set.
cdef int build_ranges(Output *output, Trace *trace) noexcept nogil
# The end of the array.
cdef int output_end(Output *output) noexcept nogil
# Bytes at the end of a file; -1 sets errno.
cdef int write_all(int fd, const char *bytes, size_t len, u64 offset) noexcept nogil
