# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Descriptors of files through copies, forks and execs, as docs/nfsdb-json.md says for the key `h`.

The events of each upid are followed alone, by any thread, with what it began with left open: a
snapshot at each fork says which descriptors it had opened, closed or copied itself. What a child
began with is then looked for along its ancestors, when its entry is written.
"""
from libc.string cimport memcmp

from libetrace.trace.events cimport ETRACE_EV_CLOSE, ETRACE_EV_DUP, ETRACE_EV_OPEN, ETRACE_EV_PIPE
from libetrace.core.memory cimport arena_take, buffer_add
from libetrace.trace.event_model cimport CLOEXEC
from libetrace.trace.trace cimport NO_PROCESS, Path, Process
from libetrace.core.types cimport s32

cdef enum:
    N_STANDARD = 3


cdef inline bint is_followed(s32 fd) noexcept nogil:
    return 0 <= fd < N_DESCRIPTORS


cdef inline u64 bit(int fd) noexcept nogil:
    return <u64>1 << fd


cdef inline void empty(Follower *follower, s32 fd) noexcept nogil:
    if is_followed(fd):
        follower.touched |= bit(fd)
        follower.filled &= ~bit(fd)


cdef inline Slot *fill(Follower *follower, s32 fd) noexcept nogil:
    follower.touched |= bit(fd)
    follower.filled |= bit(fd)
    return &follower.slots[fd]


# Finds the file of a descriptor now; False: none.
cdef inline bint look_up(const Follower *follower, int fd, Slot *found) noexcept nogil:
    if follower.touched & bit(fd):
        found[0] = follower.slots[fd]
        return follower.filled & bit(fd) != 0
    found.opened = NULL
    found.source = <u8>fd
    found.is_cloexec = False  # as far as is known: has_survived says what it must be
    found.has_survived = follower.has_executed
    return True


cdef void copy(Follower *follower, s32 old_fd, s32 new_fd, bint is_cloexec) noexcept nogil:
    cdef Slot source
    cdef Slot *slot
    if old_fd == new_fd:
        return
    if not is_followed(new_fd):
        return
    if not is_followed(old_fd) or not look_up(follower, old_fd, &source):
        empty(follower, new_fd)
        return
    slot = fill(follower, new_fd)
    slot[0] = source
    slot.is_cloexec = is_cloexec


cdef void follow(Follower *follower, const Event *event) noexcept nogil:
    cdef Slot *slot
    if event.kind == ETRACE_EV_OPEN:
        if is_followed(event.fd):
            slot = fill(follower, event.fd)
            slot.opened = event
            slot.is_cloexec = event.access & CLOEXEC != 0
    elif event.kind == ETRACE_EV_CLOSE:
        empty(follower, event.fd)
    elif event.kind == ETRACE_EV_DUP:
        copy(follower, event.fd, event.fd2, event.access & CLOEXEC != 0)
    elif event.kind == ETRACE_EV_PIPE:
        empty(follower, event.fd)
        empty(follower, event.fd2)


cdef void follow_exec(Follower *follower) noexcept nogil:
    cdef int fd
    for fd in range(N_DESCRIPTORS):
        if follower.filled & bit(fd) and follower.slots[fd].is_cloexec:
            follower.filled &= ~bit(fd)
    follower.has_executed = True


cdef int follow_fork(Follower *follower, Event *fork, Arena *arena,
                     Buffer *snapshots) noexcept nogil:
    cdef Slot kept[N_DESCRIPTORS]
    cdef Snapshot snapshot
    cdef Slot *slots
    cdef int n = 0
    cdef int fd
    for fd in range(N_DESCRIPTORS):
        if follower.filled & bit(fd):
            kept[n] = follower.slots[fd]
            n += 1
    slots = <Slot *>arena_take(arena, n * sizeof(Slot))
    if slots == NULL:
        return -1
    for fd in range(n):
        slots[fd] = kept[fd]
    snapshot.touched = follower.touched
    snapshot.filled = follower.filled
    snapshot.has_executed = follower.has_executed
    snapshot.slots = slots
    fork.fd = <s32>(snapshots.len / sizeof(Snapshot))
    return buffer_add(snapshots, &snapshot, sizeof(snapshot))


cdef int add_wanted(const Follower *follower, u32 index, Buffer *wanted) noexcept nogil:
    cdef Slot slot
    cdef Wanted one
    cdef int fd
    for fd in range(N_STANDARD):
        if look_up(follower, fd, &slot) and slot.opened == NULL:
            one.index = index
            one.fd = <u8>fd
            one.source = slot.source
            one.has_survived = slot.has_survived
            if buffer_add(wanted, &one, sizeof(one)) < 0:
                return -1
    return 0


# The slot of a filled descriptor: they are packed.
cdef inline const Slot *slot_of(const Snapshot *snapshot, int fd) noexcept nogil:
    cdef u64 before = snapshot.filled & (bit(fd) - 1)
    cdef int n = 0
    while before:
        before &= before - 1
        n += 1
    return &snapshot.slots[n]


# Devices carry no build data.
cdef bint is_device(const Path *path) noexcept nogil:
    if path.len >= 9 and not memcmp(path.bytes, b"/dev/shm/", 9):
        return False
    return path.len >= 5 and not memcmp(path.bytes, b"/dev/", 5)


cdef const Event *if_file(const Trace *trace, const Event *opened) noexcept nogil:
    cdef u32 rank = trace.chunks[opened.chunk].ranks[0][opened.payload.name.first]
    if is_device(&trace.paths[rank]):
        return NULL
    return opened


cdef const Event *find_inherited(const Trace *trace, u32 number, const Wanted *wanted) noexcept nogil:
    cdef const Process *process = &trace.processes[number]
    cdef const Snapshot *snapshot
    cdef const Slot *slot
    cdef int fd = wanted.source
    cdef bint has_survived = wanted.has_survived
    cdef int i
    for i in range(MAX_FORKS):
        if process.parent == NO_PROCESS or not process.inherits:
            return NULL
        snapshot = <const Snapshot *>trace.processes[process.parent].snapshots \
            + process.fork_event.fd
        process = &trace.processes[process.parent]
        if not snapshot.touched & bit(fd):
            has_survived = has_survived or snapshot.has_executed
            continue
        if not snapshot.filled & bit(fd):
            return NULL
        slot = slot_of(snapshot, fd)
        if has_survived and slot.is_cloexec:
            return NULL
        if slot.opened != NULL:
            return if_file(trace, slot.opened)
        fd = slot.source
        has_survived = slot.has_survived
    return NULL
