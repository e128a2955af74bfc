# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Segments that wait for each other, for slots and for processors -> when each would run.

etrace/timing/schedule.py says what the rules are. The heaps order by (time, number), so what comes out
does not depend on how they are built. Row numbers are checked before a run.
"""
from cpython cimport array

from libetrace.core.types cimport s32, s64, u8, u32

cdef enum:
    NONE = -1


cdef struct Waiting:
    double time
    s32 segment


# A binary heap, the least first, in memory that has room for all.
cdef struct Heap:
    Waiting *at
    s64 n


cdef inline bint is_before(Waiting a, Waiting b) noexcept nogil:
    return a.time < b.time or (a.time == b.time and a.segment < b.segment)


cdef void push(Heap *heap, double time, s32 segment) noexcept nogil:
    cdef s64 at = heap.n
    cdef s64 above
    cdef Waiting made
    made.time = time
    made.segment = segment
    heap.n += 1
    while at:
        above = (at - 1) // 2
        if not is_before(made, heap.at[above]):
            break
        heap.at[at] = heap.at[above]
        at = above
    heap.at[at] = made


cdef Waiting pop(Heap *heap) noexcept nogil:
    cdef Waiting least = heap.at[0]
    cdef Waiting last
    cdef s64 at = 0
    cdef s64 below = 1
    heap.n -= 1
    last = heap.at[heap.n]
    while below < heap.n:
        if below + 1 < heap.n and is_before(heap.at[below + 1], heap.at[below]):
            below += 1
        if not is_before(heap.at[below], last):
            break
        heap.at[at] = heap.at[below]
        at = below
        below = 2 * at + 1
    heap.at[at] = last
    return least


# A make or ninja that starts jobs. Of those that can begin, make takes the next one in its list after
# the one that it took last, and waits with it until it gets a slot; at the end of the list it waits
# for a job to end and begins again. Ninja takes the first one in its list when it has a slot.
cdef struct Walker:
    s32 pool  # its slots, beside one of its own
    bint is_make
    s64 n_running
    Heap ahead  # what can begin, by place in the list
    Heap passed  # what make looks at when it begins again
    double at
    s32 taken  # what it waits with, NONE for nothing
    bint is_at_end
    bint is_changed
    bint is_blocked


cdef struct Run:
    s64 n
    const double *work
    const s64 *traced  # when each began in the traced build
    const u32 *after_start
    const s32 *after
    s32 *n_missing
    const s32 *walker  # who starts the job that a segment begins, NONE for nobody
    const double *place  # of that job in the list of the walker
    const s32 *frees  # whose slot is free at the end of a segment, NONE for none
    const u8 *computes
    s64 *n_free  # slots of each pool
    Walker *walkers
    s32 *changed  # walkers of which a job ended or can begin
    s64 n_changed
    s32 *blocked  # walkers that wait for a slot, the first one first
    s64 n_blocked
    bint has_processors
    s64 n_processors
    Heap processors
    Heap ends
    double *begin
    double *end
    s32 *order
    s32 *waited_for
    s64 n_done


cdef inline bint needs_processor(const Run *run, s32 segment) noexcept nogil:
    return run.has_processors and run.work[segment] != 0 and run.computes[segment]


cdef void begin_work(Run *run, s32 segment, double now) noexcept nogil:
    run.begin[segment] = now
    push(&run.ends, now + run.work[segment], segment)


# Begin a segment that has its slot, or let it queue for a processor.
cdef void start(Run *run, s32 segment, double now) noexcept nogil:
    if needs_processor(run, segment):
        push(&run.processors, <double>run.traced[segment], segment)
    else:
        begin_work(run, segment, now)


cdef void mark_changed(Run *run, s32 number) noexcept nogil:
    if not run.walkers[number].is_changed:
        run.walkers[number].is_changed = True
        run.changed[run.n_changed] = number
        run.n_changed += 1


# Begin a segment, or show its job to who starts it.
cdef void make_ready(Run *run, s32 segment, double now) noexcept nogil:
    cdef Walker *walker
    if run.walker[segment] == NONE:
        start(run, segment, now)
        return
    walker = &run.walkers[run.walker[segment]]
    run.begin[segment] = now
    if walker.is_make and not walker.is_at_end and run.place[segment] <= walker.at:
        push(&walker.passed, run.place[segment], segment)
    else:
        push(&walker.ahead, run.place[segment], segment)
    mark_changed(run, run.walker[segment])


cdef inline bint has_slot(const Run *run, const Walker *walker) noexcept nogil:
    return walker.n_running == 0 or run.n_free[walker.pool] > 0


cdef void begin_list(Walker *walker) noexcept nogil:
    cdef Waiting each
    walker.is_at_end = False
    walker.at = -1.0
    while walker.passed.n:
        each = pop(&walker.passed)
        push(&walker.ahead, each.time, each.segment)


cdef void block(Run *run, s32 number) noexcept nogil:
    if not run.walkers[number].is_blocked:
        run.walkers[number].is_blocked = True
        run.blocked[run.n_blocked] = number
        run.n_blocked += 1


# Start jobs until there is no slot or nothing that can begin; `segment` has just ended.
cdef void walk(Run *run, s32 number, s32 segment, double now) noexcept nogil:
    cdef Walker *walker = &run.walkers[number]
    cdef Waiting following
    cdef s32 job
    if walker.is_at_end:
        begin_list(walker)
    while True:
        if walker.taken == NONE and not walker.ahead.n:
            if walker.passed.n and walker.n_running == 0:
                begin_list(walker)
                continue
            walker.is_at_end = True
            return
        if walker.taken == NONE and (walker.is_make or has_slot(run, walker)):
            following = pop(&walker.ahead)
            walker.taken, walker.at = following.segment, following.time
        if not has_slot(run, walker):
            block(run, number)
            return
        if walker.n_running:
            run.n_free[walker.pool] -= 1
        walker.n_running += 1
        job, walker.taken = walker.taken, NONE
        if run.begin[job] < now:
            run.waited_for[job] = segment
        start(run, job, now)


# Begin what waits, as long as there are slots and processors.
cdef void take_places(Run *run, s32 segment, double now) noexcept nogil:
    cdef s64 i
    cdef s64 n = run.n_blocked
    cdef s32 number
    cdef bint is_due
    run.n_blocked = 0
    for i in range(n):  # who goes on waiting keeps its place
        number = run.blocked[i]
        run.walkers[number].is_blocked = False
        if has_slot(run, &run.walkers[number]):
            run.walkers[number].is_changed = False  # make has seen what ended while it waited
            walk(run, number, segment, now)
        else:
            block(run, number)
    for i in range(run.n_changed):
        number = run.changed[i]
        is_due = run.walkers[number].is_changed and not run.walkers[number].is_blocked
        run.walkers[number].is_changed = False
        if is_due:
            walk(run, number, segment, now)
    run.n_changed = 0
    while run.processors.n and run.n_processors > 0:
        run.n_processors -= 1
        begin_work(run, pop(&run.processors).segment, now)


# Let what followed a segment begin.
cdef void finish(Run *run, s32 segment, double now) noexcept nogil:
    cdef u32 at
    cdef s32 other, number
    run.end[segment] = now
    run.order[run.n_done] = segment
    run.n_done += 1
    for at in range(run.after_start[segment], run.after_start[segment + 1]):
        other = run.after[at]
        run.n_missing[other] -= 1
        if not run.n_missing[other]:
            run.waited_for[other] = segment
            make_ready(run, other, now)
    number = run.frees[segment]
    if number != NONE:
        run.walkers[number].n_running -= 1
        if run.walkers[number].n_running:  # the last one has the slot of its own
            run.n_free[run.walkers[number].pool] += 1
        mark_changed(run, number)
    if needs_processor(run, segment):
        run.n_processors += 1


cdef void run_all(Run *run) noexcept nogil:
    cdef s64 i
    cdef Waiting next_end
    for i in range(run.n):
        run.waited_for[i] = NONE
    for i in range(run.n):
        if not run.n_missing[i]:
            make_ready(run, <s32>i, 0.0)
    if not run.ends.n or run.ends.at[0].time > 0.0:
        take_places(run, NONE, 0.0)
    while run.ends.n:
        next_end = pop(&run.ends)
        finish(run, next_end.segment, next_end.time)
        # what ends at one time is seen at once, with what takes no time after it
        if not run.ends.n or run.ends.at[0].time > next_end.time:
            take_places(run, next_end.segment, next_end.time)


# The edges the other way round: what follows each segment, in the order of what follows.
cdef void turn(s64 n, const u32 *start, const s32 *before, u32 *after_start, s32 *after,
               s32 *n_missing) noexcept nogil:
    cdef s64 i
    cdef u32 at
    for i in range(n):
        n_missing[i] = <s32>(start[i + 1] - start[i])
        for at in range(start[i], start[i + 1]):
            after_start[before[at] + 1] += 1
    for i in range(n):
        after_start[i + 1] += after_start[i]
    # each start is moved to its end while it is filled, and all are moved back
    for i in range(n):
        for at in range(start[i], start[i + 1]):
            after[after_start[before[at]]] = <s32>i
            after_start[before[at]] += 1
    i = n
    while i > 0:
        after_start[i] = after_start[i - 1]
        i -= 1
    after_start[0] = 0


cdef array.array zeros(code, Py_ssize_t n):
    return array.clone(array.array(code), n, zero=True)


cdef int check_rows(const s32[::1] rows, s64 n) except -1:
    cdef Py_ssize_t i
    for i in range(rows.shape[0]):
        if rows[i] < NONE or rows[i] >= n:
            raise IndexError(rows[i])
    return 0


cdef int check_edges(const u32[::1] start, const s32[::1] before) except -1:
    cdef s64 n = start.shape[0] - 1
    cdef Py_ssize_t i
    if n < 0 or start[0] or start[n] != <u32>before.shape[0]:
        raise ValueError("starts of no edges")
    for i in range(n):
        if start[i] > start[i + 1]:
            raise ValueError("starts are not in order")
    for i in range(before.shape[0]):
        if not 0 <= before[i] < n:
            raise IndexError(before[i])
    return 0


def run_network(
    const u32[::1] start, const s32[::1] before, const double[::1] work, const s64[::1] traced,
    const s32[::1] walker, const double[::1] place, const s32[::1] frees, const u8[::1] computes,
    const s32[::1] pools, const u8[::1] is_make, sizes, n_processors,
):
    """Return begin, end (float64), order and waited_for (int32) of n segments; all (n,).

    Segment i follows `before[start[i]:start[i + 1]]`. `walker` and `frees` are numbers of walkers, -1
    for none, `place` (not negative) is that in their lists; walkers have `pools`, numbers of `sizes`.
    `n_processors` None: enough. Fewer than n are in order when some wait forever: then `order` is
    shorter. IndexError, ValueError for numbers of no segments, walkers or pools.
    """
    cdef s64 n = start.shape[0] - 1
    cdef s64 n_walkers = pools.shape[0]
    cdef Py_ssize_t i
    check_edges(start, before)
    if not n == work.shape[0] == traced.shape[0] == walker.shape[0] == place.shape[0] \
            == frees.shape[0] == computes.shape[0] or n_walkers != is_make.shape[0]:
        raise ValueError("columns of different lengths")
    check_rows(walker, n_walkers)
    check_rows(frees, n_walkers)
    check_rows(pools, len(sizes))
    cdef array.array begin = zeros("d", n)
    cdef array.array end = zeros("d", n)
    cdef array.array order = zeros("i", n)
    cdef array.array waited_for = zeros("i", n)
    if not n:
        return begin, end, order, waited_for
    cdef array.array after_start = zeros("I", n + 1)
    cdef array.array after = zeros("i", before.shape[0] + 1)
    cdef array.array n_missing = zeros("i", n)
    # every walker has one of the slots
    cdef array.array n_free = array.array("q", [size - 1 for size in sizes] or [0])
    cdef array.array changed = zeros("i", n_walkers + 1)
    cdef array.array blocked = zeros("i", n_walkers + 1)
    cdef bytearray walkers = bytearray((n_walkers + 1) * sizeof(Walker))
    cdef s64 n_jobs = 0
    for i in range(n):
        n_jobs += walker[i] != NONE
    cdef s64 n_queue = n if n_processors is not None else 0
    cdef bytearray waiting = bytearray((n + n_queue + 2 * n_jobs) * sizeof(Waiting))
    cdef const s32 *edges = &before[0] if before.shape[0] else NULL
    cdef Waiting *room = <Waiting *><char *>waiting
    cdef Run run
    run.n = n
    run.work, run.traced, run.computes = &work[0], &traced[0], &computes[0]
    run.walker, run.place, run.frees = &walker[0], &place[0], &frees[0]
    run.after_start, run.after = <u32 *>after_start.data.as_uints, <s32 *>after.data.as_ints
    run.n_missing = <s32 *>n_missing.data.as_ints
    run.n_free = <s64 *>n_free.data.as_longlongs
    run.walkers = <Walker *><char *>walkers
    run.changed, run.n_changed = <s32 *>changed.data.as_ints, 0
    run.blocked, run.n_blocked = <s32 *>blocked.data.as_ints, 0
    run.has_processors = n_processors is not None
    run.n_processors = n_processors if n_processors is not None else 0
    run.ends.at, run.ends.n = room, 0
    run.processors.at, run.processors.n = room + n, 0
    run.begin, run.end = begin.data.as_doubles, end.data.as_doubles
    run.order, run.waited_for = <s32 *>order.data.as_ints, <s32 *>waited_for.data.as_ints
    run.n_done = 0
    room += n + n_queue
    for i in range(n):  # a job is in each heap once
        if walker[i] != NONE:
            run.walkers[walker[i]].ahead.n += 1
    for i in range(n_walkers):
        run.walkers[i].pool, run.walkers[i].is_make = pools[i], is_make[i]
        run.walkers[i].taken, run.walkers[i].is_at_end = NONE, True
        run.walkers[i].ahead.at = room
        room += run.walkers[i].ahead.n
        run.walkers[i].passed.at = room
        room += run.walkers[i].ahead.n
        run.walkers[i].ahead.n = run.walkers[i].passed.n = 0
    with nogil:
        turn(n, &start[0], edges, <u32 *>after_start.data.as_uints, <s32 *>after.data.as_ints, run.n_missing)
        run_all(&run)
    return begin, end, order[:run.n_done], waited_for


def find_slacks(
    const u32[::1] start, const s32[::1] before, const s32[::1] order, const double[::1] end,
    const double[::1] work,
):
    """Return how much later each segment could end without a later end of all: (n,) float64."""
    cdef s64 n = start.shape[0] - 1
    cdef Py_ssize_t i
    cdef s32 segment
    cdef u32 at
    cdef double begin
    cdef double last = 0.0
    check_edges(start, before)
    check_rows(order, n)
    if not n == order.shape[0] == end.shape[0] == work.shape[0]:
        raise ValueError("columns of different lengths")
    cdef array.array latest = zeros("d", n)
    cdef double *late = latest.data.as_doubles
    for i in range(n):
        last = max(last, end[i]) if i else end[i]
    for i in range(n):
        late[i] = last
    for i in range(n - 1, -1, -1):
        segment = order[i]
        if segment == NONE:
            raise IndexError(segment)
        begin = late[segment] - work[segment]
        for at in range(start[segment], start[segment + 1]):
            late[before[at]] = min(late[before[at]], begin)
    for i in range(n):
        late[i] -= end[i]
    return latest
