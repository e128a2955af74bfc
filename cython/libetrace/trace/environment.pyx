# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Environment groups of upid 0 and the mounts of all processes -> their tables."""
from libc.stdlib cimport qsort
from libc.string cimport memset

from libetrace.image.column_builder cimport NONE, add8, add32, add64
from libetrace.trace.events cimport (
    ETRACE_DATA_MS, ETRACE_DATA_MT, ETRACE_DATA_MX, ETRACE_EV_MOUNT, ETRACE_EV_NEW_PROC,
    ETRACE_EV_UMOUNT,
)
from libetrace.trace.line_grammar cimport FIRST_DATA, forms
from libetrace.core.memory cimport buffer_add, buffer_free
from libetrace.core.interned cimport NO_NAME
from libetrace.trace.event_model cimport GOES_ON, HAS_FAILED, Event
from libetrace.trace.report cimport NO_ENVIRONMENT, report_add
from libetrace.image.schema cimport (
    ENVIRONMENT_STRING, ENVIRONMENT_UPID, MOUNTS_EXECUTION, MOUNTS_FLAGS, MOUNTS_KIND, MOUNTS_OK,
    MOUNTS_SOURCE, MOUNTS_TARGET, MOUNTS_TIME_NS, MOUNTS_TYPE,
)
from libetrace.core.spill cimport spill_step
from libetrace.trace.trace cimport NO_PROCESS, STRING, compare_events, event_line, find_process
from libetrace.core.types cimport s32, s64, u8, u32


# A process that was started with a variable.
cdef struct Holder:
    s64 upid
    u32 variable  # number of its path


cdef struct MountEntry:
    const Event *event
    u32 process
    u32 index
    bint is_ok


# ---- environment ----


cdef int compare_holders(const void *a, const void *b) noexcept nogil:
    cdef const Holder *x = <const Holder *>a
    cdef const Holder *y = <const Holder *>b
    if x.upid != y.upid:
        return -1 if x.upid < y.upid else 1
    return (x.variable > y.variable) - (x.variable < y.variable)


# The variable closes a group: everyone named since the one before has it.
cdef int end_group(Trace *trace, const Event *first, const Event *last,
                   Buffer *holders) noexcept nogil:
    cdef Holder holder
    holder.variable = trace.chunks[last.chunk].ranks[0][<u32>last.fd]
    while True:
        holder.upid = first.payload.number
        if buffer_add(holders, &holder, sizeof(holder)) < 0:
            return -1
        if first == last:
            return 0
        first = first.next


cdef int collect_holders(Trace *trace, Buffer *holders) noexcept nogil:
    cdef u32 number = find_process(trace, 0)
    cdef const Event *event
    cdef const Event *first = NULL
    if number == NO_PROCESS:
        return 0
    event = trace.processes[number].first
    while event != NULL:
        if first != NULL and not event.access & GOES_ON:
            report_add(&trace.report, NO_ENVIRONMENT, event_line(trace, first), 1)
            first = NULL
        if first == NULL:
            first = event
        if <u32>event.fd != NO_NAME:
            if end_group(trace, first, event, holders) < 0:
                return -1
            first = NULL
        event = event.next
    if first != NULL:
        report_add(&trace.report, NO_ENVIRONMENT, event_line(trace, first), 1)
    return 0


cdef int add_holder(Trace *trace, Buffer *columns, const Holder *holder) noexcept nogil:
    trace.uses[STRING][holder.variable] = True
    if add64(&columns[ENVIRONMENT_UPID], holder.upid) < 0:
        return -1
    return add32(&columns[ENVIRONMENT_STRING], <s32>holder.variable)


# In order, each once.
cdef int add_holders(Trace *trace, Buffer *columns, Buffer *holders) noexcept nogil:
    cdef const Holder *all_holders = <const Holder *>holders.data
    cdef size_t n = holders.len / sizeof(Holder)
    cdef size_t i
    if n:
        qsort(holders.data, n, sizeof(Holder), compare_holders)
    for i in range(n):
        if i and not compare_holders(&all_holders[i - 1], &all_holders[i]):
            continue
        if add_holder(trace, columns, &all_holders[i]) < 0:
            return -1
    return 0


cdef int add_environment(Trace *trace, Buffer *columns) noexcept nogil:
    cdef Buffer holders
    cdef int status
    memset(&holders, 0, sizeof(holders))
    status = collect_holders(trace, &holders)
    if status == 0:
        status = add_holders(trace, columns, &holders)
    buffer_free(&holders)
    return status


# ---- mounts ----


cdef int collect_mounts(Trace *trace, u32 number, Buffer *entries) noexcept nogil:
    cdef MountEntry entry
    cdef const Event *event = trace.processes[number].first
    cdef u32 n_steps = 0
    entry.process = number
    entry.index = 0
    while event != NULL:
        if event.kind == ETRACE_EV_NEW_PROC:
            entry.index += 1
        elif event.kind in (ETRACE_EV_MOUNT, ETRACE_EV_UMOUNT):
            entry.event = event
            entry.is_ok = not event.access & HAS_FAILED
            if buffer_add(entries, &entry, sizeof(entry)) < 0:
                return -1
        event = event.next
        spill_step(&trace.spill, &n_steps)
    return 0


cdef int compare_mounts(const void *a, const void *b) noexcept nogil:
    return compare_events((<const MountEntry *>a).event, (<const MountEntry *>b).event)


# The number of a string of the event, NONE when it is absent.
cdef s32 find_name(Trace *trace, const Event *event, u32 wanted) noexcept nogil:
    cdef const u32 *ranks = trace.chunks[event.chunk].ranks[0]
    cdef u32 name
    cdef u32 i
    for i in range(forms.events[event.kind].n_data):
        name = event.payload.mount.names[i]
        if forms.events[event.kind].data[i] - <u32>FIRST_DATA == wanted and name != NO_NAME:
            trace.uses[STRING][ranks[name]] = True
            return <s32>ranks[name]
    return NONE


cdef int add_mount(Trace *trace, Buffer *columns, const MountEntry *entry) noexcept nogil:
    cdef const Event *event = entry.event
    cdef u32 row = trace.processes[entry.process].first_execution + entry.index
    if add32(&columns[MOUNTS_EXECUTION], <s32>row) < 0 \
            or add64(&columns[MOUNTS_TIME_NS], event.time) < 0 \
            or add8(&columns[MOUNTS_KIND], event.kind == ETRACE_EV_UMOUNT) < 0 \
            or add32(&columns[MOUNTS_SOURCE], find_name(trace, event, ETRACE_DATA_MS)) < 0 \
            or add32(&columns[MOUNTS_TARGET], find_name(trace, event, ETRACE_DATA_MT)) < 0 \
            or add32(&columns[MOUNTS_TYPE], find_name(trace, event, ETRACE_DATA_MX)) < 0 \
            or add64(&columns[MOUNTS_FLAGS], <s64>event.payload.mount.flags) < 0:
        return -1
    return add8(&columns[MOUNTS_OK], entry.is_ok)


cdef int add_entries(Trace *trace, Buffer *columns, Buffer *entries) noexcept nogil:
    cdef size_t n = entries.len / sizeof(MountEntry)
    cdef size_t i
    if n:
        qsort(entries.data, n, sizeof(MountEntry), compare_mounts)
    for i in range(n):
        if add_mount(trace, columns, &(<const MountEntry *>entries.data)[i]) < 0:
            return -1
    return 0


cdef int add_mounts(Trace *trace, Buffer *columns) noexcept nogil:
    cdef Buffer entries
    cdef int status = 0
    cdef u32 i
    memset(&entries, 0, sizeof(entries))
    if trace.n_kinds_seen[<int>ETRACE_EV_MOUNT] or trace.n_kinds_seen[<int>ETRACE_EV_UMOUNT]:
        for i in range(trace.n_processes):
            if status == 0:
                status = collect_mounts(trace, i, &entries)
    if status == 0:
        status = add_entries(trace, columns, &entries)
    buffer_free(&entries)
    return status
