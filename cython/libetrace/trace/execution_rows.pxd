# SPDX-License-Identifier: Apache-2.0
# Rows of the executions of one process.
from libetrace.trace.descriptors cimport Descriptors, OpenLog
from libetrace.core.memory cimport Buffer
from libetrace.trace.merged_records cimport Merging
from libetrace.trace.trace cimport Program, Trace, UsageSums
from libetrace.image.schema cimport N_COLUMNS
from libetrace.core.types cimport N_USAGE, s64, u32, u64


# Where an execution begins, and its first rows of `children` and `cpus`.
cdef struct Start:
    s64 time
    const Program *program
    const UsageSums *usage  # the last one reported, NULL: none
    u64 child
    u64 cpu


# Memory of a thread, used again for each process.
cdef struct Builder:
    Trace *trace
    Buffer *grouped  # records that are there already, by process
    u32 next_wanted  # descriptor of the process at hand
    Descriptors table
    OpenLog log
    Buffer records
    Buffer files  # OpenFile, at the end
    Merging merging
    Buffer starts
    s64 used[N_USAGE]  # by the executions of the process at hand that have their rows
    Buffer columns[N_COLUMNS]  # rows so far; strings are numbers of paths


cdef int builder_init(Builder *builder, Trace *trace) noexcept nogil
cdef void builder_free(Builder *builder) noexcept nogil
# Appends the rows of the process's executions; -1 when there is no memory.
cdef int build_process(Builder *builder, u32 number) noexcept nogil
