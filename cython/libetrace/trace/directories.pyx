# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Renames of directories -> renames of the files below them, as far as the trace knew them by then.

A directory is a name that begins other names. The opens, renames and links of names below one that was
renamed are followed in order of time: names that are there then go along. An unlink is not traced: a new
name counts only when the trace has it otherwise, when the file is there now, or when another rename takes
it further. More work than WORK_FREE and WORK_PER_EVENT allow is given up, and reported.
"""
from libc.stdlib cimport qsort
from libc.string cimport memchr, memcmp, memcpy, memset

from libetrace.core.interned cimport NO_NAME, Name, Names, names_intern
from libetrace.core.memory cimport Buffer, buffer_add, buffer_free, buffer_reserve, spill_step
from libetrace.core.scan cimport ETRACE_PAD
from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.trace.events cimport *
from libetrace.trace.trace cimport (
    EXCHANGES, TOO_MANY_MOVES, Event, Renamed, compare_events, report_add,
)

cdef extern from "<sys/stat.h>" nogil:
    ctypedef struct stat_result "struct stat":
        pass
    int lstat(const char *path, stat_result *result)

cdef enum:
    WORK_PER_EVENT = 16
    WORK_FREE = 1 << 26
    IS_DIRECTORY = 1  # marks of names
    IS_BELOW = 2
    IS_ALIVE = 4
    IS_WANTED = 8


# Something that happens to names, in order of time.
cdef struct Step:
    const Event *event
    const Event *before  # first half of a rename
    u32 name
    u32 old  # NO_NAME but of a rename


cdef struct Below:
    Trace *trace
    Names *names
    Buffer marks  # u8 by name
    Buffer alive  # u32 names
    Buffer taken  # u32: those below a directory
    Buffer others  # u32: the same below the other one of an exchange
    Buffer steps  # Step
    Buffer moved  # Moved
    Buffer text  # of a new name
    u32 n_first  # names that the trace has
    u64 work
    u64 budget


# ---- names ----


cdef inline u8 *mark(Below *below, u32 name) noexcept nogil:
    return <u8 *>below.marks.data + name


# The number of a name of an event among those of worker 0.
cdef inline u32 number_of(const Trace *trace, const Event *event, u32 name) noexcept nogil:
    if name == NO_NAME or trace.chunks[event.chunk].names == &trace.workers[0].names:
        return name
    return trace.chunks[event.chunk].ranks[0][name]


cdef inline bint is_below(const Name *name, const Name *directory) noexcept nogil:
    return name.len > directory.len + 1 and name.bytes[directory.len] == c'/' and not memcmp(
        name.bytes, directory.bytes, directory.len)


# The name below `to` that one below `directory` becomes; NO_NAME without memory.
cdef u32 name_below(Below *below, u32 name, u32 directory, u32 to) noexcept nogil:
    cdef const Name *names = below.names.all
    cdef size_t rest = names[name].len - names[directory].len
    cdef size_t n = names[to].len + rest
    cdef u32 number
    below.text.len = 0
    if buffer_reserve(&below.text, n + ETRACE_PAD) < 0:
        return NO_NAME
    memcpy(below.text.data, names[to].bytes, names[to].len)
    memcpy(below.text.data + names[to].len, names[name].bytes + names[directory].len, rest)
    memset(below.text.data + n, 0, ETRACE_PAD)
    number = names_intern(below.names, below.text.data, n)
    while number != NO_NAME and below.marks.len < below.names.n:
        if buffer_add(&below.marks, b"\0", 1) < 0:
            return NO_NAME
    return number


# ---- directories that were renamed ----


cdef int compare_prefix(const Name *name, const Name *directory) noexcept nogil:
    cdef int order = memcmp(name.bytes, directory.bytes, min(name.len, directory.len))
    if order:
        return order
    if name.len <= directory.len:
        return -1
    return <int><u8>name.bytes[directory.len] - <int>c'/'


# Marks the names below a directory; `order` has all names in order of bytes.
cdef bint mark_below(Below *below, const u32 *order, u32 directory) noexcept nogil:
    cdef const Name *names = below.names.all
    cdef u32 low = 0
    cdef u32 high = below.n_first
    cdef u32 middle
    if mark(below, directory)[0] & IS_DIRECTORY:
        return True
    while low < high:
        middle = low + (high - low) / 2
        if compare_prefix(&names[order[middle]], &names[directory]) < 0:
            low = middle + 1
        else:
            high = middle
    while low < below.n_first and not compare_prefix(&names[order[low]], &names[directory]):
        mark(below, directory)[0] |= IS_DIRECTORY
        mark(below, order[low])[0] |= IS_BELOW
        below.work += 1
        low += 1
    return mark(below, directory)[0] & IS_DIRECTORY


cdef bint is_exchange(const Event *before) noexcept nogil:
    return before.kind == ETRACE_EV_RENAME2FROM and before.access & EXCHANGES


# Marks the names below both names of a rename; whether it is of a directory.
cdef bint mark_renamed(Below *below, const u32 *order, const Renamed *renamed) noexcept nogil:
    cdef u32 old = number_of(below.trace, renamed.before, renamed.before.payload.name.first)
    cdef u32 new = number_of(below.trace, renamed.event, renamed.event.payload.name.first)
    cdef bint found
    if old == NO_NAME or new == NO_NAME:
        return False
    found = mark_below(below, order, old)
    if found or is_exchange(renamed.before):
        found |= mark_below(below, order, new)
    return found


# Whether some rename is of a directory: those below it are marked.
cdef bint mark_directories(Below *below, const u32 *order) noexcept nogil:
    cdef const Trace *trace = below.trace
    cdef const Renamed *renamed
    cdef bint found = False
    cdef u32 worker
    cdef u64 i
    for worker in range(trace.n_workers):
        renamed = <const Renamed *>trace.workers[worker].renamed.data
        for i in range(trace.workers[worker].renamed.len / sizeof(Renamed)):
            found |= mark_renamed(below, order, &renamed[i])
    return found


# ---- what happened to names, in order of time ----


cdef int add_step(Below *below, const Event *event, const Event *before) noexcept nogil:
    cdef Step step
    step.event, step.before, step.old = event, before, NO_NAME
    step.name = number_of(below.trace, event, event.payload.name.first)
    if before != NULL:
        step.old = number_of(below.trace, before, before.payload.name.first)
    if step.name == NO_NAME:
        return 0
    if before == NULL and not mark(below, step.name)[0] & IS_BELOW:
        return 0
    return buffer_add(&below.steps, &step, sizeof(step))


cdef int collect_steps(Below *below) noexcept nogil:
    cdef Trace *trace = below.trace
    cdef const Event *event
    cdef const Event *before
    cdef u32 n_steps = 0
    cdef u32 i
    for i in range(trace.n_processes):
        event, before = trace.processes[i].first, NULL
        while event != NULL:
            if event.kind in (ETRACE_EV_OPEN, ETRACE_EV_LINK_TO, ETRACE_EV_SYMLINK):
                if add_step(below, event, NULL) < 0:
                    return -1
            elif event.kind == ETRACE_EV_RENAME_TO and add_step(below, event, before) < 0:
                return -1
            before = event
            event = event.next
            spill_step(&trace.spill, &n_steps)
    return 0


cdef int compare_steps(const void *a, const void *b) noexcept nogil:
    cdef const Step *x = <const Step *>a
    cdef const Step *y = <const Step *>b
    cdef int order = compare_events(x.event, y.event)
    return order if order else (a > b) - (a < b)


# ---- who is there, and who goes along ----


cdef int appear(Below *below, u32 name) noexcept nogil:
    if mark(below, name)[0] & IS_ALIVE:
        return 0
    mark(below, name)[0] |= IS_ALIVE
    return buffer_add(&below.alive, &name, sizeof(name))


# Takes the names below a directory out of those that are there.
cdef int take_below(Below *below, u32 directory, Buffer *taken) noexcept nogil:
    cdef u32 *alive = <u32 *>below.alive.data
    cdef size_t n = below.alive.len / sizeof(u32)
    cdef size_t n_left = 0
    cdef size_t i
    taken.len = 0
    below.work += n
    for i in range(n):
        if not mark(below, alive[i])[0] & IS_ALIVE:
            continue  # it has moved away
        if not is_below(&below.names.all[alive[i]], &below.names.all[directory]):
            alive[n_left] = alive[i]
            n_left += 1
        elif buffer_add(taken, &alive[i], sizeof(u32)) < 0:
            return -1
    below.alive.len = n_left * sizeof(u32)
    return 0


cdef int add_moved(Below *below, const Event *event, u32 old, u32 new,
                   bint is_exchange) noexcept nogil:
    cdef Moved moved
    moved.event, moved.old, moved.new, moved.is_exchange = event, old, new, is_exchange
    return buffer_add(&below.moved, &moved, sizeof(moved))


# Moves what was taken from below `directory` to below `to`. Of an exchange, `others` were below `to`.
cdef int move_taken(Below *below, const Event *event, const Buffer *taken, u32 directory, u32 to,
                    bint is_first_half) noexcept nogil:
    cdef const u32 *name = <const u32 *>taken.data
    cdef bint is_pair
    cdef u32 new
    cdef size_t i
    for i in range(taken.len / sizeof(u32)):
        new = name_below(below, name[i], directory, to)
        if new == NO_NAME:
            return -1
        # both halves of a pair are still marked as there
        is_pair = mark(below, new)[0] & IS_ALIVE and below.others.len
        if (not is_pair or is_first_half) and add_moved(below, event, name[i], new, is_pair) < 0:
            return -1
    return 0


cdef int settle_taken(Below *below, const Buffer *taken, u32 directory, u32 to,
                      bint appears) noexcept nogil:
    cdef const u32 *name = <const u32 *>taken.data
    cdef u32 new
    cdef size_t i
    for i in range(taken.len / sizeof(u32)):
        if not appears:
            mark(below, name[i])[0] &= ~<u8>IS_ALIVE
            continue
        new = name_below(below, name[i], directory, to)
        if new == NO_NAME or appear(below, new) < 0:
            return -1
    return 0


cdef int move_directory(Below *below, const Step *step) noexcept nogil:
    cdef bint exchanges = is_exchange(step.before)
    below.others.len = 0
    mark(below, step.name)[0] |= IS_DIRECTORY
    if take_below(below, step.old, &below.taken) < 0:
        return -1
    if exchanges and take_below(below, step.name, &below.others) < 0:
        return -1
    if move_taken(below, step.event, &below.taken, step.old, step.name, True) < 0 \
            or move_taken(below, step.event, &below.others, step.name, step.old, False) < 0:
        return -1
    if settle_taken(below, &below.taken, step.old, step.name, False) < 0 \
            or settle_taken(below, &below.others, step.name, step.old, False) < 0:
        return -1
    if settle_taken(below, &below.taken, step.old, step.name, True) < 0:
        return -1
    return settle_taken(below, &below.others, step.name, step.old, True)


# Whether something can be below a name: it was a directory before, or became one with another.
cdef inline bint may_be_directory(Below *below, u32 name, bint was_alive) noexcept nogil:
    cdef u8 marks = mark(below, name)[0]
    return marks & IS_DIRECTORY != 0 or (marks & IS_BELOW != 0 and not was_alive)


cdef int take_step(Below *below, const Step *step) noexcept nogil:
    cdef bint was_alive
    cdef bint moves
    if step.old == NO_NAME:
        return appear(below, step.name)
    if step.old == step.name:
        return 0
    was_alive = mark(below, step.old)[0] & IS_ALIVE != 0
    moves = may_be_directory(below, step.old, was_alive)
    if is_exchange(step.before):
        moves |= may_be_directory(below, step.name, mark(below, step.name)[0] & IS_ALIVE != 0)
    else:
        mark(below, step.old)[0] &= ~<u8>IS_ALIVE
        if (was_alive or mark(below, step.name)[0] & IS_BELOW) and appear(below, step.name) < 0:
            return -1
    return move_directory(below, step) if moves else 0


cdef int follow_steps(Below *below) noexcept nogil:
    cdef Step *steps = <Step *>below.steps.data
    cdef size_t n = below.steps.len / sizeof(Step)
    cdef size_t i
    if n:
        qsort(steps, n, sizeof(Step), compare_steps)
    for i in range(n):
        if take_step(below, &steps[i]) < 0:
            return -1
        if below.work > below.budget:
            report_add(&below.trace.report, TOO_MANY_MOVES, 0, 1)
            below.moved.len = 0
            return 0
    return 0


# ---- which of them count ----


cdef bint name_is_there(const Name *name) noexcept nogil:
    cdef stat_result result
    return memchr(name.bytes, 0, name.len) == NULL and lstat(name.bytes, &result) == 0


cdef bint is_wanted(Below *below, u32 name) noexcept nogil:
    cdef u8 *marks = mark(below, name)
    if name < below.n_first or marks[0] & IS_WANTED or below.trace.no_stat:
        return True
    return name_is_there(&below.names.all[name])


# From the last move on, so that a name that another one takes further counts.
cdef void drop_unwanted(Below *below) noexcept nogil:
    cdef Moved *moved = <Moved *>below.moved.data
    cdef size_t n = below.moved.len / sizeof(Moved)
    cdef size_t at = n
    cdef size_t i = n
    while i:
        i -= 1
        if not is_wanted(below, moved[i].new):
            continue
        mark(below, moved[i].old)[0] |= IS_WANTED
        below.names.all[moved[i].old].wants_stat = True
        below.names.all[moved[i].new].wants_stat = True
        at -= 1
        moved[at] = moved[i]
    if at:
        for i in range(n - at):
            moved[i] = moved[at + i]
    below.moved.len = (n - at) * sizeof(Moved)


cdef int compare_moved(const void *a, const void *b) noexcept nogil:
    cdef const Moved *x = <const Moved *>a
    cdef const Moved *y = <const Moved *>b
    if x.event != y.event:
        return (x.event > y.event) - (x.event < y.event)
    return (x.old > y.old) - (x.old < y.old)


cdef int find_below(Below *below, const u32 *order) noexcept nogil:
    cdef Trace *trace = below.trace
    cdef u32 i
    if buffer_reserve(&below.marks, below.n_first + 1) < 0:
        return -1
    memset(below.marks.data, 0, below.n_first)
    below.marks.len = below.n_first
    below.budget = WORK_FREE
    for i in range(trace.n_processes):
        below.budget += WORK_PER_EVENT * <u64>trace.processes[i].n_events
    if not mark_directories(below, order):
        return 0
    if collect_steps(below) < 0 or follow_steps(below) < 0:
        return -1
    drop_unwanted(below)
    if below.moved.len:
        qsort(below.moved.data, below.moved.len / sizeof(Moved), sizeof(Moved), compare_moved)
    return 0


cdef bint has_renames(const Trace *trace) noexcept nogil:
    cdef u32 i
    for i in range(trace.n_workers):
        if trace.workers[i].renamed.len:
            return True
    return False


cdef int find_moved(Trace *trace, const u32 *order) noexcept nogil:
    cdef Below below
    cdef int status
    if not has_renames(trace):
        return 0
    memset(&below, 0, sizeof(below))
    below.trace = trace
    below.names = &trace.workers[0].names
    below.n_first = below.names.n
    status = find_below(&below, order)
    buffer_free(&below.marks)
    buffer_free(&below.alive)
    buffer_free(&below.taken)
    buffer_free(&below.others)
    buffer_free(&below.steps)
    buffer_free(&below.text)
    trace.moved = below.moved
    return status


cdef const Moved *moved_by(const Trace *trace, const Event *event, u32 *n) noexcept nogil:
    cdef const Moved *moved = <const Moved *>trace.moved.data
    cdef u64 end = trace.moved.len / sizeof(Moved)
    cdef u64 low = 0
    cdef u64 high = end
    cdef u64 middle
    while low < high:
        middle = low + (high - low) / 2
        if moved[middle].event < event:
            low = middle + 1
        else:
            high = middle
    n[0] = 0
    while low + n[0] < end and moved[low + n[0]].event == event:
        n[0] += 1
    return moved + low
