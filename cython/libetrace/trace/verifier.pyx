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

from libetrace.core.memory cimport (
    Arena, arena_take, buffer_add, buffer_free, buffer_reserve, spill_drop_all, spill_step,
)
from libetrace.core.scan cimport etrace_take
from libetrace.core.types cimport s32, u8, u32, u64
from libetrace.image.devices cimport is_device_path
from libetrace.trace.events cimport *
from libetrace.trace.trace cimport (
    BY_EXEC, CLOEXEC, DEAD, HAS_FAILED, IS_CLONE, NO_FOLLOWER, NO_LEADER, NO_PROCESS, REOPENS_PIPE,
    Claim, Path, Process, Program, Renamed, Worker, compare_events, drop_dead, event_line, report_add,
)


# ---- descriptors ----


cdef enum:
    N_STANDARD = 3


cdef void follower_free(Follower *follower) noexcept nogil:
    buffer_free(&follower.places)
    buffer_free(&follower.touched)
    buffer_free(&follower.changed)


# Makes the follower that of another upid.
cdef void follower_reset(Follower *follower) noexcept nogil:
    cdef const Touched *touched = <const Touched *>follower.touched.data
    cdef size_t i
    for i in range(follower.touched.len / sizeof(Touched)):
        (<u32 *>follower.places.data)[touched[i].fd] = 0
    follower.touched.len = follower.changed.len = 0
    follower.n_execs = 0


cdef inline Slot *find_touched(const Follower *follower, s32 fd) noexcept nogil:
    cdef u32 place
    if fd < 0 or <u64>fd >= follower.places.len / sizeof(u32):
        return NULL
    place = (<const u32 *>follower.places.data)[fd]
    return &(<Touched *>follower.touched.data)[place - 1].slot if place else NULL


# Room for a descriptor among the places.
cdef int reserve_place(Follower *follower, s32 fd) noexcept nogil:
    cdef size_t n = (<size_t>fd + 1) * sizeof(u32)
    if n <= follower.places.len:
        return 0
    n = max(n, 2 * follower.places.len)
    if buffer_reserve(&follower.places, n - follower.places.len) < 0:
        return -1
    memset(follower.places.data + follower.places.len, 0, n - follower.places.len)
    follower.places.len = n
    return 0


# The descriptor gets this slot; -1: no memory.
cdef int touch(Follower *follower, s32 fd, const Slot *slot) noexcept nogil:
    cdef Touched fresh
    cdef Touched *touched
    cdef u32 place
    if not 0 <= fd < N_DESCRIPTORS:
        return 0
    if reserve_place(follower, fd) < 0:
        return -1
    place = (<u32 *>follower.places.data)[fd]
    if not place:
        memset(&fresh, 0, sizeof(fresh))
        fresh.fd = fd
        if buffer_add(&follower.touched, &fresh, sizeof(fresh)) < 0:
            return -1
        place = <u32>(follower.touched.len / sizeof(Touched))
        (<u32 *>follower.places.data)[fd] = place
    touched = &(<Touched *>follower.touched.data)[place - 1]
    touched.slot = slot[0]
    touched.slot.n_execs = follower.n_execs
    if touched.is_noted:
        return 0
    touched.is_noted = True
    place -= 1
    return buffer_add(&follower.changed, &place, sizeof(place))


cdef inline int empty(Follower *follower, s32 fd) noexcept nogil:
    cdef Slot slot
    memset(&slot, 0, sizeof(slot))
    return touch(follower, fd, &slot)


cdef inline bint is_open(const Slot *slot, u32 n_execs) noexcept nogil:
    return slot.is_filled and not (slot.is_cloexec and slot.n_execs < n_execs)


# Finds the file of a descriptor now; False: none.
cdef inline bint look_up(const Follower *follower, s32 fd, Slot *found) noexcept nogil:
    cdef const Slot *slot = find_touched(follower, fd)
    if slot != NULL:
        found[0] = slot[0]
        return is_open(slot, follower.n_execs)
    found.opened = NULL
    found.source = fd
    found.is_filled = True
    found.is_cloexec = False  # as far as is known: has_survived says what it must be
    found.has_survived = follower.n_execs > 0
    return True


cdef int copy(Follower *follower, s32 old_fd, s32 new_fd, bint is_cloexec) noexcept nogil:
    cdef Slot slot
    if old_fd == new_fd:
        return 0
    if not 0 <= old_fd < N_DESCRIPTORS or not look_up(follower, old_fd, &slot):
        return empty(follower, new_fd)
    slot.is_cloexec = is_cloexec
    return touch(follower, new_fd, &slot)


# An Open, Close, Dup or Pipe; -1: no memory.
cdef int follow(Follower *follower, const Event *event) noexcept nogil:
    cdef Slot slot
    if event.kind == ETRACE_EV_OPEN:
        memset(&slot, 0, sizeof(slot))
        slot.opened = event
        slot.is_filled = True
        slot.is_cloexec = event.access & CLOEXEC != 0
        return touch(follower, event.fd, &slot)
    if event.kind == ETRACE_EV_CLOSE:
        return empty(follower, event.fd)
    if event.kind == ETRACE_EV_DUP:
        return copy(follower, event.fd, event.fd2, event.access & CLOEXEC != 0)
    if event.kind == ETRACE_EV_PIPE:
        return -1 if empty(follower, event.fd) < 0 else empty(follower, event.fd2)
    return 0


# Appends what has changed since the last fork, so that n forks cost no n tables; -1: no memory.
cdef int follow_fork(Follower *follower, Event *fork, Buffer *snapshots,
                     Buffer *changes) noexcept nogil:
    cdef const u32 *changed = <const u32 *>follower.changed.data
    cdef Touched *touched
    cdef Snapshot snapshot
    cdef Change change
    cdef size_t i
    snapshot.n_execs = follower.n_execs
    fork.fd = <s32>(snapshots.len / sizeof(Snapshot))
    change.fork = <u32>fork.fd
    for i in range(follower.changed.len / sizeof(u32)):
        touched = &(<Touched *>follower.touched.data)[changed[i]]
        touched.is_noted = False
        change.fd = touched.fd
        change.slot = touched.slot
        if buffer_add(changes, &change, sizeof(change)) < 0:
            return -1
    follower.changed.len = 0
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


cdef inline bint is_before(const Change *change, s32 fd, u32 fork) noexcept nogil:
    return change.fd < fd or (change.fd == fd and change.fork < fork)


cdef int compare_changes(const void *a, const void *b) noexcept nogil:
    cdef const Change *x = <const Change *>a
    cdef const Change *y = <const Change *>b
    if is_before(x, y.fd, y.fork):
        return -1
    return is_before(y, x.fd, x.fork)


# The slot of a descriptor at a fork, by bisection; NULL: no event had touched it.
cdef const Slot *slot_at(const Process *process, s32 fd, u32 fork) noexcept nogil:
    cdef const Change *changes = <const Change *>process.changes
    cdef u64 low = 0
    cdef u64 high = process.n_changes
    cdef u64 middle
    while low < high:
        middle = (low + high) / 2
        if is_before(&changes[middle], fd, fork + 1):
            low = middle + 1
        else:
            high = middle
    return &changes[low - 1].slot if low and changes[low - 1].fd == fd else NULL


cdef const Event *if_file(const Trace *trace, const Event *opened) noexcept nogil:
    cdef u32 rank = trace.chunks[opened.chunk].ranks[0][opened.payload.name.first]
    cdef const Path *path = &trace.paths[rank]
    if is_device_path(path.bytes, path.len, path.mode):
        return NULL
    return opened


cdef const Event *find_inherited(const Trace *trace, u32 number, const Wanted *wanted) noexcept nogil:
    cdef const Process *process = &trace.processes[number]
    cdef const Snapshot *snapshot
    cdef const Slot *slot
    cdef s32 fd = wanted.source
    cdef bint has_survived = wanted.has_survived
    cdef u32 fork
    cdef int i
    for i in range(MAX_FORKS):
        if process.parent == NO_PROCESS or not process.inherits:
            return NULL
        fork = <u32>process.fork_event.fd
        process = &trace.processes[process.parent]
        snapshot = <const Snapshot *>process.snapshots + fork
        slot = slot_at(process, fd, fork)
        if slot == NULL:
            has_survived = has_survived or snapshot.n_execs > 0
            continue
        if not is_open(slot, snapshot.n_execs) or (has_survived and slot.is_cloexec):
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
    Buffer changes  # Change
    Buffer wanted  # Wanted
    Follower follower


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
    cdef Follower *follower = &lists.follower
    cdef Event *before = NULL
    cdef Event *run = NULL  # first of the Close, Comm, Usage and Written events with one stamp up to here
    cdef u64 clean = 0
    cdef u32 n_steps = 0
    follower_reset(follower)
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
            follower.n_execs += 1
            if buffer_add(&lists.programs, &event.payload.program, sizeof(Program *)) < 0 \
                    or add_wanted(follower, process.n_programs, &lists.wanted) < 0:
                return -1
        elif event.kind == ETRACE_EV_SCHED_FORK:
            if add_claim(trace, worker, process, event, before) < 0 \
                    or follow_fork(follower, event, &lists.snapshots, &lists.changes) < 0:
                return -1
        elif event.kind == ETRACE_EV_EXIT:
            process.has_exit = True
            process.exit_status = <u64>event.payload.number
        elif event.kind == ETRACE_EV_RENAME_TO:
            if add_renamed(worker, before, event) < 0:
                return -1
        elif follow(follower, event) < 0:
            return -1
        if touches_pipes(event, &clean) \
                and buffer_add(&lists.pipe_events, &event, sizeof(event)) < 0:
            return -1
        before = event
        event = event.next
        spill_step(&trace.spill, &n_steps)
    if process.n_programs:
        return 0
    return add_wanted(follower, 0, &lists.wanted)


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
    lists.changes.len = 0
    if collect(trace, worker, process, lists) < 0:
        return -1
    process.programs = <Program **>keep(&worker.arena, &lists.programs)
    process.pipe_events = <Event **>keep(&worker.arena, &lists.pipe_events)
    process.snapshots = keep(&worker.arena, &lists.snapshots)
    process.changes = keep(&worker.arena, &lists.changes)
    process.n_changes = lists.changes.len / sizeof(Change)
    process.wanted = <Wanted *>keep(&worker.arena, &lists.wanted)
    process.n_pipe_events = <u32>(lists.pipe_events.len / sizeof(Event *))
    process.n_wanted = <u32>(lists.wanted.len / sizeof(Wanted))
    if process.programs == NULL or process.pipe_events == NULL:
        return -1
    if process.snapshots == NULL or process.changes == NULL or process.wanted == NULL:
        return -1
    if process.n_changes > 1:
        qsort(process.changes, process.n_changes, sizeof(Change), compare_changes)
    return 0


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
    buffer_free(&lists.changes)
    buffer_free(&lists.wanted)
    follower_free(&lists.follower)
    return status
