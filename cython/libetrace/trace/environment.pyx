# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Environment groups of upid 0 and the mounts of all processes, as JSON."""
from libc.stdlib cimport qsort
from libc.string cimport memset

from libetrace.trace.events cimport (
    ETRACE_DATA_MS, ETRACE_DATA_MT, ETRACE_DATA_MX, ETRACE_EV_MOUNT, ETRACE_EV_MOUNT_FAILED,
    ETRACE_EV_NEW_PROC, ETRACE_EV_UMOUNT, ETRACE_EV_UMOUNT_FAILED,
)
from libetrace.trace.line_grammar cimport FIRST_DATA, forms
from libetrace.core.json_text cimport json_number, json_text, json_unsigned
from libetrace.core.memory cimport buffer_add, buffer_free
from libetrace.core.interned cimport NO_NAME
from libetrace.trace.event_model cimport GOES_ON, HAS_FAILED, Event, MountCall
from libetrace.trace.report cimport NO_ENVIRONMENT, report_add
from libetrace.trace.trace cimport (
    NO_PROCESS, Path, Process, compare_events, event_line, find_process,
)
from libetrace.core.types cimport s64, u32


# A process that was started with a variable.
cdef struct Holder:
    u32 variable  # number of its path
    s64 upid


cdef struct MountEntry:
    const Event *event
    u32 process
    u32 index
    bint is_ok


cdef int compare_holders(const void *a, const void *b) noexcept nogil:
    cdef const Holder *x = <const Holder *>a
    cdef const Holder *y = <const Holder *>b
    if x.variable != y.variable:
        return -1 if x.variable < y.variable else 1
    return (x.upid > y.upid) - (x.upid < y.upid)


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


cdef int put_path(Trace *trace, u32 number, Buffer *out) noexcept nogil:
    return buffer_add(out, trace.paths[number].json, trace.paths[number].json_len)


cdef int put_holders(Trace *trace, const Holder *holders, size_t n, Buffer *out) noexcept nogil:
    cdef size_t i
    for i in range(n):
        if i and holders[i].variable == holders[i - 1].variable:
            if holders[i].upid == holders[i - 1].upid:
                continue
            if json_text(out, b",") < 0:
                return -1
        else:
            if json_text(out, b"],\n" if i else b"\n") < 0:
                return -1
            if put_path(trace, holders[i].variable, out) < 0 or json_text(out, b":[") < 0:
                return -1
        if json_number(out, holders[i].upid) < 0:
            return -1
    return json_text(out, b"]\n") if n else 0


cdef int write_environment(Trace *trace, Buffer *out) noexcept nogil:
    cdef Buffer holders
    cdef size_t n
    cdef int status
    memset(&holders, 0, sizeof(holders))
    status = collect_holders(trace, &holders)
    n = holders.len / sizeof(Holder)
    if status == 0 and n:
        qsort(holders.data, n, sizeof(Holder), compare_holders)
    if status == 0 and json_text(out, b"{") < 0:
        status = -1
    if status == 0:
        status = put_holders(trace, <const Holder *>holders.data, n, out)
    buffer_free(&holders)
    return status if status < 0 else json_text(out, b"}\n")


cdef int collect_mounts(Trace *trace, u32 number, Buffer *entries) noexcept nogil:
    cdef MountEntry entry
    cdef const Event *event = trace.processes[number].first
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
    return 0


cdef int compare_mounts(const void *a, const void *b) noexcept nogil:
    return compare_events((<const MountEntry *>a).event, (<const MountEntry *>b).event)


cdef int put_names(Trace *trace, const Event *event, Buffer *out) noexcept nogil:
    cdef const MountCall *call = event.payload.mount
    cdef const u32 *ranks = trace.chunks[event.chunk].ranks[0]
    cdef u32 i
    cdef u32 data
    cdef const char *key
    for i in range(forms.events[event.kind].n_data):
        if call.names[i] == NO_NAME:
            continue
        data = forms.events[event.kind].data[i] - <u32>FIRST_DATA
        key = b',"target":' if data == ETRACE_DATA_MT else \
            b',"source":' if data == ETRACE_DATA_MS else b',"type":'
        if json_text(out, key) < 0 or put_path(trace, ranks[call.names[i]], out) < 0:
            return -1
    return 0


cdef int put_mount(Trace *trace, const MountEntry *entry, Buffer *out) noexcept nogil:
    cdef const Event *event = entry.event
    if json_text(out, b'{"p":') < 0 \
            or json_number(out, trace.processes[entry.process].upid) < 0 \
            or json_text(out, b',"x":') < 0 or json_unsigned(out, entry.index) < 0 \
            or json_text(out, b',"t":') < 0 or json_number(out, event.time) < 0 \
            or json_text(out, b',"k":"mount"' if event.kind == ETRACE_EV_MOUNT
                         else b',"k":"umount"') < 0 \
            or put_names(trace, event, out) < 0 \
            or json_text(out, b',"flags":') < 0 \
            or json_unsigned(out, event.payload.mount.flags) < 0:
        return -1
    return json_text(out, b',"ok":true}' if entry.is_ok else b',"ok":false}')


cdef int put_mounts(Trace *trace, const Buffer *entries, Buffer *out) noexcept nogil:
    cdef size_t n = entries.len / sizeof(MountEntry)
    cdef size_t i
    if n:
        qsort(entries.data, n, sizeof(MountEntry), compare_mounts)
    for i in range(n):
        if json_text(out, b",\n" if i else b"\n") < 0:
            return -1
        if put_mount(trace, &(<const MountEntry *>entries.data)[i], out) < 0:
            return -1
    return json_text(out, b"\n") if n else 0


cdef int write_mounts(Trace *trace, Buffer *out) noexcept nogil:
    cdef Buffer entries
    cdef int status = json_text(out, b"[")
    cdef u32 i
    memset(&entries, 0, sizeof(entries))
    if trace.n_kinds_seen[<int>ETRACE_EV_MOUNT] or trace.n_kinds_seen[<int>ETRACE_EV_UMOUNT]:
        for i in range(trace.n_processes):
            if status == 0:
                status = collect_mounts(trace, i, &entries)
    if status == 0:
        status = put_mounts(trace, &entries, out)
    buffer_free(&entries)
    return status if status < 0 else json_text(out, b"]\n")
