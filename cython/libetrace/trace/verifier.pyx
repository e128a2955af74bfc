# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One pass over the events of a process: sorts them by time, removes lone halves of pairs, follows forks.

Leaves a chain of live events, the commands of the executions, the forks, and the list of events that
the pass over pipes has to look at, which is short.

Descriptors are followed through copies, forks and execs as docs/nfsdb-json.md says for the key `h`: the
events of each upid alone, with what it began with left open. A snapshot at each fork says which
descriptors it had opened, closed or copied itself. What a child began with is then looked for along
its ancestors, when its entry is written.
"""
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcmp, memcpy, memset

from libetrace.core.memory cimport arena_take, buffer_add, buffer_free, spill_drop_all, spill_step
from libetrace.core.scan cimport etrace_take
from libetrace.core.types cimport s32
from libetrace.trace.events cimport *
from libetrace.trace.trace cimport (
    BY_EXEC, CLOEXEC, DEAD, HAS_FAILED, IS_CLONE, NO_FOLLOWER, NO_LEADER, NO_PROCESS, REOPENS_PIPE,
    Claim, Path, Process, Program, Renamed, Worker, compare_events, drop_dead, event_line, report_add,
)


# ---- descriptors ----


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


# Appends a Snapshot to `snapshots`; -1: no memory.
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


# Appends the files that the execution has inherited as 0 to 2 to `wanted` (Wanted).
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


# ---- events ----


cdef enum:
    STEP = 64  # processes taken at a time
    PROCESSES_A_DROP = 1 << 12


# Buffers for one process, reused for the next one.
cdef struct Lists:
    Buffer programs  # Program *
    Buffer pipe_events  # Event *
    Buffer snapshots  # Snapshot
    Buffer wanted  # Wanted


cdef int compare_places(const void *a, const void *b) noexcept nogil:
    return compare_events((<Event **>a)[0], (<Event **>b)[0])


cdef int sort_events(Process *process) noexcept nogil:
    cdef Event *event = process.first
    cdef Event **sorted_events
    cdef u64 n = 0
    cdef u64 i
    while event != NULL:
        n += 1
        event = event.next
    sorted_events = <Event **>malloc(n * sizeof(Event *))
    if sorted_events == NULL:
        return -1
    event = process.first
    for i in range(n):
        sorted_events[i] = event
        event = event.next
    qsort(sorted_events, n, sizeof(Event *), compare_places)
    for i in range(n):
        sorted_events[i].next = sorted_events[i + 1] if i + 1 < n else NULL
    process.first = sorted_events[0]
    process.last = sorted_events[n - 1]
    free(sorted_events)
    return 0


# Whether `b` can be the other half of `a`.
cdef bint leads(u8 a, u8 b) noexcept nogil:
    if a == ETRACE_EV_SYS_CLONE:
        return b in (ETRACE_EV_SCHED_FORK, ETRACE_EV_SYS_CLONE_FAILED)
    if a in (ETRACE_EV_RENAME_FROM, ETRACE_EV_RENAME2FROM):
        return b in (ETRACE_EV_RENAME_TO, ETRACE_EV_RENAME_FAILED)
    if a in (ETRACE_EV_LINK_FROM, ETRACE_EV_LINKAT_FROM):
        return b in (ETRACE_EV_LINK_TO, ETRACE_EV_LINK_FAILED)
    return a == ETRACE_EV_MOUNT and b == ETRACE_EV_MOUNT_FAILED


cdef bint needs_leader(u8 kind) noexcept nogil:
    return kind in (ETRACE_EV_SYS_CLONE_FAILED, ETRACE_EV_RENAME_TO, ETRACE_EV_LINK_TO,
                    ETRACE_EV_MOUNT_FAILED)


cdef bint needs_follower(u8 kind) noexcept nogil:
    return kind in (ETRACE_EV_SYS_CLONE, ETRACE_EV_RENAME_FROM, ETRACE_EV_RENAME2FROM,
                    ETRACE_EV_LINK_FROM, ETRACE_EV_LINKAT_FROM)


# Whether the event lacks the other half that it needs; `problem` says which.
cdef inline bint is_half(u8 before, const Event *event, int *problem) noexcept nogil:
    if needs_follower(event.kind):
        problem[0] = NO_FOLLOWER
        return event.next == NULL or not leads(event.kind, event.next.kind)
    problem[0] = NO_LEADER
    return needs_leader(event.kind) and not leads(before, event.kind)


# Checks an event by its neighbours.
cdef inline void note_neighbours(const Event *before, Event *event) noexcept nogil:
    if event.kind == ETRACE_EV_SCHED_FORK:
        if before != NULL and before.kind == ETRACE_EV_SYS_CLONE:
            event.access |= IS_CLONE
    elif event.kind in (ETRACE_EV_MOUNT, ETRACE_EV_UMOUNT) and event.next != NULL:
        if event.next.kind == (<u8>ETRACE_EV_MOUNT_FAILED if event.kind == ETRACE_EV_MOUNT
                               else <u8>ETRACE_EV_UMOUNT_FAILED):
            event.access |= HAS_FAILED


# Looks at pairs among the live events, then takes the halves out.
cdef void verify_pairs(Trace *trace, Worker *worker, Process *process) noexcept nogil:
    cdef Event *event
    cdef u8 before = DEAD
    cdef u8 kind
    cdef bint has_halves = False
    cdef int problem = 0
    cdef u32 n_steps = 0
    drop_dead(trace, process)
    event = process.first
    while event != NULL:
        kind = event.kind
        if is_half(before, event, &problem):
            report_add(&worker.report, problem, event_line(trace, event), 1)
            event.kind = DEAD
            has_halves = True
        before = kind
        event = event.next
        spill_step(&trace.spill, &n_steps)
    if has_halves:
        drop_dead(trace, process)


# Marks the Close events that are an exec's: right before it, with its stamp.
cdef void note_exec(Event *run, const Event *program) noexcept nogil:
    while run != program:
        if run.time == program.time and run.kind == ETRACE_EV_CLOSE:
            run.access |= BY_EXEC
        run = run.next


cdef int add_claim(Trace *trace, Worker *worker, Process *process, Event *event,
                   const Event *before) noexcept nogil:
    cdef Claim claim
    claim.child = event.payload.number
    claim.event = event
    claim.flags = 0
    if event.access & IS_CLONE:
        claim.flags = <u64>before.payload.number
    claim.parent = <u32>(process - trace.processes)
    claim.index = process.n_programs
    return buffer_add(&worker.claims, &claim, sizeof(claim))


cdef int add_renamed(Worker *worker, const Event *before, const Event *event) noexcept nogil:
    cdef Renamed renamed
    renamed.before, renamed.event = before, event
    return buffer_add(&worker.renamed, &renamed, sizeof(renamed))


# Descriptors below 64 that cannot hold a pipe, so that most opens and closes are skipped later.
cdef inline bint is_clean(u64 clean, s32 fd) noexcept nogil:
    return 0 <= fd < 64 and clean >> fd & 1


cdef inline u64 with_bit(u64 clean, s32 fd, bint value) noexcept nogil:
    if not 0 <= fd < 64:
        return clean
    return clean | <u64>1 << fd if value else clean & ~(<u64>1 << fd)


# Whether the event can change which pipes are held; keeps the set of clean descriptors.
cdef inline bint touches_pipes(const Event *event, u64 *clean) noexcept nogil:
    cdef bint was_clean
    if event.kind in (ETRACE_EV_OPEN, ETRACE_EV_CLOSE):
        was_clean = is_clean(clean[0], event.fd) and not event.access & REOPENS_PIPE
        clean[0] = with_bit(clean[0], event.fd, not event.access & REOPENS_PIPE)
        return not was_clean
    if event.kind == ETRACE_EV_PIPE:
        clean[0] = with_bit(with_bit(clean[0], event.fd, False), event.fd2, False)
        return True
    if event.kind == ETRACE_EV_DUP:
        was_clean = is_clean(clean[0], event.fd) and is_clean(clean[0], event.fd2)
        clean[0] = with_bit(clean[0], event.fd2, is_clean(clean[0], event.fd))
        return not was_clean
    return event.kind in (ETRACE_EV_SCHED_FORK, ETRACE_EV_NEW_PROC, ETRACE_EV_EXIT)


# Executions, forks, descriptors and the events of pipes, in order.
cdef int collect(Trace *trace, Worker *worker, Process *process, Lists *lists) noexcept nogil:
    cdef Event *event = process.first
    cdef Follower follower
    cdef Event *before = NULL
    cdef Event *run = NULL  # first of the Close, Comm, Usage and Written events with one stamp up to here
    cdef u64 clean = 0
    cdef u32 n_steps = 0
    follower_init(&follower)
    while event != NULL:
        note_neighbours(before, event)
        if event.kind in (ETRACE_EV_CLOSE, ETRACE_EV_COMM, ETRACE_EV_USAGE, ETRACE_EV_WRITTEN):
            if run == NULL or run.time != event.time:
                run = event
        else:
            if event.kind == ETRACE_EV_NEW_PROC and run != NULL:
                note_exec(run, event)
            run = NULL
        if event.kind == ETRACE_EV_NEW_PROC:
            process.n_programs += 1
            follow_exec(&follower)
            if buffer_add(&lists.programs, &event.payload.program, sizeof(Program *)) < 0 \
                    or add_wanted(&follower, process.n_programs, &lists.wanted) < 0:
                return -1
        elif event.kind == ETRACE_EV_SCHED_FORK:
            if add_claim(trace, worker, process, event, before) < 0 \
                    or follow_fork(&follower, event, &worker.arena, &lists.snapshots) < 0:
                return -1
        elif event.kind == ETRACE_EV_EXIT:
            process.has_exit = True
            process.exit_status = <u64>event.payload.number
        elif event.kind == ETRACE_EV_RENAME_TO:
            if add_renamed(worker, before, event) < 0:
                return -1
        else:
            follow(&follower, event)
        if touches_pipes(event, &clean) \
                and buffer_add(&lists.pipe_events, &event, sizeof(event)) < 0:
            return -1
        before = event
        event = event.next
        spill_step(&trace.spill, &n_steps)
    if process.n_programs:
        return 0
    return add_wanted(&follower, 0, &lists.wanted)


# A copy of a list that stays.
cdef void *keep(Arena *arena, const Buffer *list) noexcept nogil:
    cdef void *kept = arena_take(arena, list.len)
    if kept != NULL and list.len:
        memcpy(kept, list.data, list.len)
    return kept


cdef int verify_process(Trace *trace, Worker *worker, Process *process,
                        Lists *lists) noexcept nogil:
    if process.is_unsorted and process.upid and process.first != NULL \
            and sort_events(process) < 0:
        return -1
    verify_pairs(trace, worker, process)
    lists.programs.len = lists.pipe_events.len = lists.snapshots.len = lists.wanted.len = 0
    if collect(trace, worker, process, lists) < 0:
        return -1
    process.programs = <Program **>keep(&worker.arena, &lists.programs)
    process.pipe_events = <Event **>keep(&worker.arena, &lists.pipe_events)
    process.snapshots = keep(&worker.arena, &lists.snapshots)
    process.wanted = <Wanted *>keep(&worker.arena, &lists.wanted)
    process.n_pipe_events = <u32>(lists.pipe_events.len / sizeof(Event *))
    process.n_wanted = <u32>(lists.wanted.len / sizeof(Wanted))
    if process.programs == NULL or process.pipe_events == NULL:
        return -1
    return -1 if process.snapshots == NULL or process.wanted == NULL else 0


cdef int verify_processes(Trace *trace, unsigned int worker) noexcept nogil:
    cdef Lists lists
    cdef u64 i
    cdef u64 end
    cdef int status = 0
    memset(&lists, 0, sizeof(lists))
    while status == 0 and not trace.load.cancelled:
        i = etrace_take(&trace.load.taken) * STEP
        if i >= trace.n_processes:
            break
        end = min(i + STEP, <u64>trace.n_processes)
        if i % PROCESSES_A_DROP == 0:
            spill_drop_all(&trace.spill)
        while status == 0 and i < end:
            status = verify_process(trace, &trace.workers[worker], &trace.processes[i], &lists)
            i += 1
    buffer_free(&lists.programs)
    buffer_free(&lists.pipe_events)
    buffer_free(&lists.snapshots)
    buffer_free(&lists.wanted)
    return status
