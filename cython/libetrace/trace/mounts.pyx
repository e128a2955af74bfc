# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Mounts that show one tree twice -> one name for each file.

A bind mount shows its source below its target, from the mount to the umount; so does a second mount of
one source. A mount without an umount counts for what the process that started the mounting one, and all
its descendants, did afterwards: the trace does not show in which namespace it was.
"""
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memset

from libetrace.core.interned cimport NO_NAME, Name, Names, names_intern
from libetrace.core.memory cimport Buffer, buffer_add, buffer_free, buffer_reserve, spill_step
from libetrace.core.scan cimport ETRACE_PAD
from libetrace.core.types cimport INT64_MAX, s64, u8, u32, u64
from libetrace.trace.events cimport *
from libetrace.trace.line_grammar cimport FIRST_DATA, forms
from libetrace.trace.trace cimport (
    HAS_FAILED, NO_PROCESS, Chunk, Event, Process, Program, compare_events,
)

cdef enum:
    BIND = 0x1000  # MS_BIND
    REMOUNT = 0x20
    MAX_MOUNTS = 64  # that show a tree twice: all names are compared with each
    MAX_DEPTH = 1 << 16


cdef struct Call:
    const Event *event
    u32 process


# A tree that is shown below `target`, too.
cdef struct Twice:
    Name source  # without a slash at the end
    Name target
    s64 begin
    s64 end
    u32 above  # process that it counts for and all below, NO_PROCESS for everybody


cdef struct Mounts:
    Trace *trace
    Buffer calls  # Call
    Buffer twice  # Twice
    Buffer text


cdef int compare_calls(const void *a, const void *b) noexcept nogil:
    return compare_events((<const Call *>a).event, (<const Call *>b).event)


# A string of the event; its length is 0 when it is absent. Slashes at its end are left out.
cdef Name string_of(const Trace *trace, const Event *event, u32 wanted) noexcept nogil:
    cdef Name found
    cdef u32 name
    cdef u32 i
    memset(&found, 0, sizeof(found))
    for i in range(forms.events[event.kind].n_data):
        name = event.payload.mount.names[i]
        if forms.events[event.kind].data[i] - <u32>FIRST_DATA == wanted and name != NO_NAME:
            found = trace.chunks[event.chunk].names.all[name]
    while found.len > 1 and found.bytes[found.len - 1] == c'/':
        found.len -= 1
    return found


cdef inline bint is_same(const Name *a, const Name *b) noexcept nogil:
    return a.len == b.len and not memcmp(a.bytes, b.bytes, a.len)


cdef int collect_calls(Mounts *mounts) noexcept nogil:
    cdef Trace *trace = mounts.trace
    cdef const Event *event
    cdef Call call
    cdef u32 n_steps = 0
    for call.process in range(trace.n_processes):
        event = trace.processes[call.process].first
        while event != NULL:
            if event.kind in (ETRACE_EV_MOUNT, ETRACE_EV_UMOUNT) and not event.access & HAS_FAILED:
                call.event = event
                if buffer_add(&mounts.calls, &call, sizeof(call)) < 0:
                    return -1
            event = event.next
            spill_step(&trace.spill, &n_steps)
    if mounts.calls.len:
        qsort(mounts.calls.data, mounts.calls.len / sizeof(Call), sizeof(Call), compare_calls)
    return 0


# Where the source of a mount is seen already; length 0: nowhere.
cdef Name seen_at(const Mounts *mounts, size_t number) noexcept nogil:
    cdef const Call *calls = <const Call *>mounts.calls.data
    cdef const Trace *trace = mounts.trace
    cdef Name source = string_of(trace, calls[number].event, ETRACE_DATA_MS)
    cdef Name other
    cdef Name none
    cdef size_t i
    memset(&none, 0, sizeof(none))
    if calls[number].event.payload.mount.flags & REMOUNT:
        return none
    if calls[number].event.payload.mount.flags & BIND:
        return source if source.len and source.bytes[0] == c'/' else none
    if not source.len or source.bytes[0] != c'/':
        return none  # tmpfs and the like: each mount is a file system of its own
    for i in range(number):
        other = string_of(trace, calls[i].event, ETRACE_DATA_MS)
        if calls[i].event.kind == ETRACE_EV_MOUNT and is_same(&source, &other) \
                and not calls[i].event.payload.mount.flags & (BIND | REMOUNT):
            return string_of(trace, calls[i].event, ETRACE_DATA_MT)
    return none


# The umount of a target after its mount, NULL without one.
cdef const Event *umount_of(const Mounts *mounts, size_t number, const Name *target) noexcept nogil:
    cdef const Call *calls = <const Call *>mounts.calls.data
    cdef Name other
    cdef size_t i
    for i in range(number + 1, mounts.calls.len / sizeof(Call)):
        other = string_of(mounts.trace, calls[i].event, ETRACE_DATA_MT)
        if calls[i].event.kind == ETRACE_EV_UMOUNT and is_same(target, &other):
            return calls[i].event
    return NULL


cdef int find_twice(Mounts *mounts) noexcept nogil:
    cdef const Call *calls = <const Call *>mounts.calls.data
    cdef const Event *end
    cdef Twice twice
    cdef size_t i
    for i in range(mounts.calls.len / sizeof(Call)):
        if calls[i].event.kind != ETRACE_EV_MOUNT:
            continue
        if mounts.twice.len / sizeof(Twice) == MAX_MOUNTS:
            break
        memset(&twice, 0, sizeof(twice))
        twice.source = seen_at(mounts, i)
        twice.target = string_of(mounts.trace, calls[i].event, ETRACE_DATA_MT)
        if not twice.source.len or not twice.target.len or is_same(&twice.source, &twice.target):
            continue
        end = umount_of(mounts, i, &twice.target)
        twice.begin = calls[i].event.time
        twice.end = INT64_MAX if end == NULL else end.time
        twice.above = NO_PROCESS
        if end == NULL:
            twice.above = mounts.trace.processes[calls[i].process].parent
        if buffer_add(&mounts.twice, &twice, sizeof(twice)) < 0:
            return -1
    return 0


# ---- names ----


cdef bint is_below(const Name *name, const Name *directory) noexcept nogil:
    return name.len > directory.len and name.bytes[directory.len] == c'/' and not memcmp(
        name.bytes, directory.bytes, directory.len)


cdef bint descends(const Trace *trace, u32 process, u32 above) noexcept nogil:
    cdef u32 depth = 0
    while process != NO_PROCESS and process != above and depth < MAX_DEPTH:
        process = trace.processes[process].parent
        depth += 1
    return process == above


# The last mount over a name then, NULL without one.
cdef const Twice *mount_over(const Mounts *mounts, const Name *name, s64 time, u32 process) noexcept nogil:
    cdef const Twice *twice = <const Twice *>mounts.twice.data
    cdef size_t i = mounts.twice.len / sizeof(Twice)
    while i:
        i -= 1
        if twice[i].begin <= time < twice[i].end and is_below(name, &twice[i].target) and (
                twice[i].above == NO_PROCESS or descends(mounts.trace, process, twice[i].above)):
            return &twice[i]
    return NULL


# Replaces the name of an event.
cdef int rename(Mounts *mounts, const Event *event, u32 process, u32 *name) noexcept nogil:
    cdef Names *names = mounts.trace.chunks[event.chunk].names
    cdef const Twice *twice
    cdef const char *rest
    cdef u32 steps = 0
    cdef u32 number
    cdef size_t n_rest
    if name[0] == NO_NAME:
        return 0
    while steps < MAX_MOUNTS:
        twice = mount_over(mounts, &names.all[name[0]], event.time, process)
        if twice == NULL:
            break
        rest = names.all[name[0]].bytes + twice.target.len
        n_rest = names.all[name[0]].len - twice.target.len
        mounts.text.len = 0
        if buffer_reserve(&mounts.text, twice.source.len + n_rest + ETRACE_PAD) < 0:
            return -1
        memcpy(mounts.text.data, twice.source.bytes, twice.source.len)
        memcpy(mounts.text.data + twice.source.len, rest, n_rest)
        memset(mounts.text.data + twice.source.len + n_rest, 0, ETRACE_PAD)
        number = names_intern(names, mounts.text.data, twice.source.len + n_rest)
        if number == NO_NAME:
            return -1
        names.all[number].wants_stat |= names.all[name[0]].wants_stat
        name[0] = number
        steps += 1
    return 0


cdef int rename_event(Mounts *mounts, Event *event, u32 process) noexcept nogil:
    if event.kind == ETRACE_EV_NEW_PROC:
        return rename(mounts, event, process, &event.payload.program.names[0])
    if event.kind in (ETRACE_EV_OPEN, ETRACE_EV_SYMLINK, ETRACE_EV_RENAME_FROM,
                      ETRACE_EV_RENAME2FROM, ETRACE_EV_RENAME_TO, ETRACE_EV_LINK_FROM,
                      ETRACE_EV_LINKAT_FROM, ETRACE_EV_LINK_TO):
        return rename(mounts, event, process, &event.payload.name.first)
    return 0


cdef int rename_all(Mounts *mounts) noexcept nogil:
    cdef Trace *trace = mounts.trace
    cdef Event *event
    cdef u32 n_steps = 0
    cdef u32 i
    for i in range(trace.n_processes):
        event = trace.processes[i].first
        while event != NULL:
            if rename_event(mounts, event, i) < 0:
                return -1
            event = event.next
            spill_step(&trace.spill, &n_steps)
    return 0


cdef int join_mounts(Trace *trace) noexcept nogil:
    cdef Mounts mounts
    cdef int status
    if not trace.n_kinds_seen[<int>ETRACE_EV_MOUNT]:
        return 0
    memset(&mounts, 0, sizeof(mounts))
    mounts.trace = trace
    status = collect_calls(&mounts)
    if status == 0:
        status = find_twice(&mounts)
    if status == 0 and mounts.twice.len:
        status = rename_all(&mounts)
    buffer_free(&mounts.calls)
    buffer_free(&mounts.twice)
    buffer_free(&mounts.text)
    return status
