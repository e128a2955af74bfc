# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Follows descriptors of files from Open to Close, makes a record of each, and combines records to uses.

A hash table by descriptor, since a trace may name any number from -2^31 on. Paths are their places
in the order of bytes (see joiner.pyx).

A use lasts from an Open to the last close of its descriptors. Uses that overlap are one. So are
two that read, unless the execution ended a write since the first of them began: only then can
somebody distinguish them, and compilers read some headers again and again.
"""
from libc.stdlib cimport calloc, free, qsort
from libc.string cimport memset

from libetrace.core.interned cimport NO_NAME
from libetrace.core.memory cimport buffer_add
from libetrace.core.scan cimport etrace_hash64
from libetrace.trace.directories cimport Moved, moved_by
from libetrace.trace.events cimport *
from libetrace.trace.trace cimport ACCESS, EMPTIES, EXCHANGES

cdef enum:
    FIRST_SLOTS = 64
    READ = 0
    WRITE = 1
    READ_WRITE = 2


cdef int descriptors_init(Descriptors *table, u64 seed, Buffer *records,
                          bint by_process, OpenLog *log) noexcept nogil:
    memset(table, 0, sizeof(table[0]))
    table.seed = seed
    table.records = records
    table.by_process = by_process
    table.log = log
    table.mask = FIRST_SLOTS - 1
    table.slots = <OpenFile *>calloc(FIRST_SLOTS, sizeof(OpenFile))
    return 0 if table.slots != NULL else -1


cdef void descriptors_free(Descriptors *table) noexcept nogil:
    free(table.slots)
    table.slots = NULL


cdef inline u32 home(const Descriptors *table, s32 fd) noexcept nogil:
    return <u32>etrace_hash64(<u64>fd, table.seed) & table.mask


cdef OpenFile *descriptors_find(Descriptors *table, s32 fd) noexcept nogil:
    cdef u32 at
    if not table.n:
        return NULL
    at = home(table, fd)
    while table.slots[at].is_used:
        if table.slots[at].fd == fd:
            return &table.slots[at]
        at = (at + 1) & table.mask
    return NULL


# Closes the gap, so that no mark of a removed one is needed.
cdef void descriptors_remove(Descriptors *table, OpenFile *file) noexcept nogil:
    cdef u32 gap = <u32>(file - table.slots)
    cdef u32 at = gap
    cdef u32 wanted
    table.n -= 1
    while True:
        at = (at + 1) & table.mask
        if not table.slots[at].is_used:
            break
        wanted = home(table, table.slots[at].fd)
        if ((at - wanted) & table.mask) >= ((at - gap) & table.mask):
            table.slots[gap] = table.slots[at]
            gap = at
    table.slots[gap].is_used = False


cdef void put(Descriptors *table, const OpenFile *file) noexcept nogil:
    cdef u32 at = home(table, file.fd)
    while table.slots[at].is_used:
        at = (at + 1) & table.mask
    table.slots[at] = file[0]
    table.slots[at].is_used = True


cdef int grow(Descriptors *table) noexcept nogil:
    cdef OpenFile *older = table.slots
    cdef u32 n_older = table.mask + 1
    cdef u32 i
    table.slots = <OpenFile *>calloc(2 * <size_t>n_older, sizeof(OpenFile))
    if table.slots == NULL:
        table.slots = older
        return -1
    table.mask = 2 * n_older - 1
    for i in range(n_older):
        if older[i].is_used:
            put(table, &older[i])
    free(older)
    return 0


# The descriptor is not in the table.
cdef int descriptors_add(Descriptors *table, const OpenFile *file) noexcept nogil:
    if 2 * <u64>table.n > table.mask and grow(table) < 0:
        return -1
    put(table, file)
    table.n += 1
    return 0


cdef inline int add_record(Descriptors *table, u32 process, const Record *record) noexcept nogil:
    return buffer_add(table.records + process if table.by_process else table.records, record,
                      sizeof(record[0]))


# Whether this is the first end of the Open in any copy of the table; from now on it is not.
cdef inline bint is_first_end(OpenLog *log, const OpenFile *file) noexcept nogil:
    cdef u8 *ended = <u8 *>log.ended.data
    if not log.has_copies:
        return True
    if ended[file.order]:
        return False
    ended[file.order] = True
    return True


cdef int end_file(Descriptors *table, const OpenFile *file, s64 time) noexcept nogil:
    cdef Record record
    if not file.is_copy and not is_first_end(table.log, file):
        return 0
    record.files = file.files
    record.begin = file.time
    record.end = time
    record.index = file.index
    record.name = 0
    record.access = file.access
    record.change = file.change
    record.is_copy = file.is_copy
    return add_record(table, file.process, &record)


cdef int close_file(Descriptors *table, s32 fd, s64 time) noexcept nogil:
    cdef OpenFile *file = descriptors_find(table, fd)
    if file == NULL:
        return 0
    if end_file(table, file, time) < 0:
        return -1
    descriptors_remove(table, file)
    return 0


cdef int compare_orders(const void *a, const void *b) noexcept nogil:
    cdef u64 x = (<const OpenFile *>a).order
    cdef u64 y = (<const OpenFile *>b).order
    return (x > y) - (x < y)


cdef int descriptors_collect(const Descriptors *table, Buffer *files) noexcept nogil:
    cdef u32 i
    for i in range(table.mask + 1 if table.n else 0):
        if table.slots[i].is_used and buffer_add(files, &table.slots[i], sizeof(OpenFile)) < 0:
            return -1
    return 0


cdef int descriptors_end(Trace *trace, Descriptors *table, Buffer *files) noexcept nogil:
    cdef OpenFile *file = <OpenFile *>files.data
    cdef size_t n = files.len / sizeof(OpenFile)
    cdef size_t i
    if n:
        qsort(file, n, sizeof(OpenFile), compare_orders)
    for i in range(n):
        if end_file(table, &file[i], trace.processes[file[i].process].last.time) < 0:
            return -1
    return 0


cdef void descriptors_empty(Descriptors *table) noexcept nogil:
    if table.n:
        memset(table.slots, 0, (<size_t>table.mask + 1) * sizeof(OpenFile))
    table.n = 0


cdef inline const u32 *ranks_of(const Trace *trace, const Event *event) noexcept nogil:
    return trace.chunks[event.chunk].ranks[0]


cdef int open_file(Trace *trace, Descriptors *table, u32 process,
                   u32 index, const Event *event) noexcept nogil:
    cdef const u32 *ranks = ranks_of(trace, event)
    cdef OpenFile file
    if close_file(table, event.fd, event.time) < 0:
        return -1
    file.fd = event.fd
    file.process = process
    file.index = index
    file.files = <u64>ranks[event.payload.name.second] << 32 | ranks[event.payload.name.first]
    file.time = event.time
    file.access = event.access & ACCESS
    file.change = EMPTIED if event.access & EMPTIES else NO_CHANGE
    file.is_copy = False
    file.order = table.log.n_opens
    table.log.n_opens += 1
    if table.log.has_copies and buffer_add(&table.log.ended, b"", 1) < 0:
        return -1
    return descriptors_add(table, &file)


# A Dup: the file is in use until its copies are closed too.
cdef int copy_file(Descriptors *table, const Event *event) noexcept nogil:
    cdef const OpenFile *source = descriptors_find(table, event.fd)
    cdef OpenFile copy
    if event.fd == event.fd2:
        return 0
    if source == NULL:
        return close_file(table, event.fd2, event.time)
    copy = source[0]
    copy.fd = event.fd2
    copy.is_copy = True
    if close_file(table, event.fd2, event.time) < 0:
        return -1
    return descriptors_add(table, &copy)


# A record of a path that was not opened: renamed, linked.
cdef int touch(Trace *trace, Descriptors *table, u32 process, u32 index, const Event *event,
               u32 name, u8 access, u8 change, u32 other) noexcept nogil:
    if name == NO_NAME:
        return 0
    return touch_name(table, process, index, event.time, ranks_of(trace, event)[name], access,
                      change, other)


cdef int touch_name(Descriptors *table, u32 process, u32 index, s64 time, u32 name, u8 access,
                    u8 change, u32 other) noexcept nogil:
    cdef Record record
    record.files = <u64>name << 32 | name
    record.begin = time
    record.end = 0
    record.index = index
    record.name = other
    record.access = access
    record.change = change
    record.is_copy = False
    return add_record(table, process, &record)


# The names of an event and of the one before it.
cdef int touch_pair(Trace *trace, Descriptors *table, u32 process, u32 index, const Event *event,
                    u8 access, u8 change, const Event *other) noexcept nogil:
    cdef u32 name = ranks_of(trace, other)[other.payload.name.first]
    return touch(trace, table, process, index, event, event.payload.name.first, access, change,
                 name)


cdef inline bint is_exchange(const Event *before) noexcept nogil:
    return before.kind == ETRACE_EV_RENAME2FROM and before.access & EXCHANGES


# A file that gets the name it has loses nothing.
cdef bint is_kept(const Trace *trace, const Event *event, const Event *before) noexcept nogil:
    return ranks_of(trace, event)[event.payload.name.first] == \
        ranks_of(trace, before)[before.payload.name.first]


# Two names that change their files: both at the time of the second half.
cdef int exchange(Descriptors *table, u32 process, u32 index, s64 time, u32 old, u32 new,
                  u8 change) noexcept nogil:
    if touch_name(table, process, index, time, old, READ_WRITE, change, new) < 0:
        return -1
    return touch_name(table, process, index, time, new, READ_WRITE, change, old)


# Files below a directory that was renamed.
cdef int move_files(Trace *trace, Descriptors *table, u32 process, u32 index, const Event *event,
                    const Event *before) noexcept nogil:
    cdef u32 n
    cdef const Moved *moved = moved_by(trace, event, &n)
    cdef u32 i
    for i in range(n):
        if moved[i].is_exchange:
            if exchange(table, process, index, event.time, moved[i].old, moved[i].new,
                        EXCHANGED) < 0:
                return -1
        elif touch_name(table, process, index, before.time, moved[i].old, READ, GONE,
                        moved[i].new) < 0 \
                or touch_name(table, process, index, event.time, moved[i].new, WRITE, RENAMED,
                              moved[i].old) < 0:
            return -1
    return 0


# A rename or a link that succeeded: its second half, and the first half before it.
cdef int apply_pair(Trace *trace, Descriptors *table, u32 process, u32 index, const Event *event,
                    const Event *before) noexcept nogil:
    cdef bint changes = not is_kept(trace, event, before)
    if event.kind == ETRACE_EV_RENAME_TO and is_exchange(before):
        if exchange(table, process, index, event.time,
                    ranks_of(trace, before)[before.payload.name.first],
                    ranks_of(trace, event)[event.payload.name.first],
                    EXCHANGED if changes else NO_CHANGE) < 0:
            return -1
        return move_files(trace, table, process, index, event, before)
    if event.kind == ETRACE_EV_RENAME_TO:
        if touch_pair(trace, table, process, index, before, READ, GONE if changes else NO_CHANGE,
                      event) < 0:
            return -1
        if touch_pair(trace, table, process, index, event, WRITE,
                      RENAMED if changes else NO_CHANGE, before) < 0:
            return -1
        return move_files(trace, table, process, index, event, before)
    if touch_pair(trace, table, process, index, event, WRITE, LINKED if changes else NO_CHANGE,
                  before) < 0:
        return -1
    return touch_pair(trace, table, process, index, before, READ, NO_CHANGE, event)


cdef int apply_symlink(Trace *trace, Descriptors *table, u32 process, u32 index,
                       const Event *event) noexcept nogil:
    if touch(trace, table, process, index, event, event.payload.name.second, READ, NO_CHANGE,
             0) < 0:
        return -1
    return touch(trace, table, process, index, event, event.payload.name.first, WRITE, SYMLINKED,
                 ranks_of(trace, event)[<u32>event.fd])


cdef int apply_event(Trace *trace, Descriptors *table, u32 process, u32 index, const Event *event,
                     const Event *before) noexcept nogil:
    if event.kind == ETRACE_EV_CLOSE:
        return close_file(table, event.fd, event.time)
    if event.kind == ETRACE_EV_OPEN:
        return open_file(trace, table, process, index, event)
    if event.kind == ETRACE_EV_DUP:
        return copy_file(table, event)
    if event.kind == ETRACE_EV_PIPE:
        if close_file(table, event.fd, event.time) < 0:
            return -1
        return close_file(table, event.fd2, event.time)
    if event.kind in (ETRACE_EV_RENAME_TO, ETRACE_EV_LINK_TO):
        return apply_pair(trace, table, process, index, event, before)
    if event.kind == ETRACE_EV_SYMLINK:
        return apply_symlink(trace, table, process, index, event)
    return 0


# ---- uses ----


cdef enum:
    FEW = 16  # sorted by insertion


cdef int add_write_end(const Record *record, Buffer *ends) noexcept nogil:
    cdef s64 end = last_use(record)
    if record.access == READ:
        return 0
    return buffer_add(ends, &end, sizeof(end))


cdef int compare_stamps(const void *a, const void *b) noexcept nogil:
    cdef s64 x = (<const s64 *>a)[0]
    cdef s64 y = (<const s64 *>b)[0]
    return (x > y) - (x < y)


cdef void sort_stamps(Buffer *ends) noexcept nogil:
    if ends.len > sizeof(s64):
        qsort(ends.data, ends.len / sizeof(s64), sizeof(s64), compare_stamps)


cdef inline bint begins_before(const Use *a, const Use *b) noexcept nogil:
    if a.begin != b.begin:
        return a.begin < b.begin
    return a.record < b.record


cdef int compare_uses(const void *a, const void *b) noexcept nogil:
    return 1 if begins_before(<const Use *>b, <const Use *>a) else -1


cdef void sort_uses(Use *uses, size_t n) noexcept nogil:
    cdef Use use
    cdef size_t i
    cdef size_t at
    if n > FEW:
        qsort(uses, n, sizeof(Use), compare_uses)
        return
    for i in range(1, n):
        use = uses[i]
        at = i
        while at and begins_before(&use, &uses[at - 1]):
            uses[at] = uses[at - 1]
            at -= 1
        uses[at] = use


cdef bint has_end(const Buffer *ends, s64 begin, s64 before) noexcept nogil:
    cdef const s64 *end = <const s64 *>ends.data
    cdef u64 n = ends.len / sizeof(s64)
    cdef u64 low = 0
    cdef u64 high = n
    cdef u64 middle
    while low < high:
        middle = (low + high) / 2
        if end[middle] < begin:
            low = middle + 1
        else:
            high = middle
    return low < n and end[low] < before


cdef inline bint belongs(const Use *use, const Use *next, const Buffer *ends) noexcept nogil:
    if next.begin < use.end or next.begin == use.begin:
        return True
    if use.access != READ or next.access != READ:
        return False
    return not has_end(ends, use.begin, next.begin)


cdef size_t next_use(const Use *uses, size_t n, const Buffer *ends, Use *use) noexcept nogil:
    cdef size_t i = 1
    use[0] = uses[0]
    while i < n and belongs(use, &uses[i], ends):
        if uses[i].end > use.end:
            use.end = uses[i].end
            use.last = uses[i].record
        if uses[i].access != use.access:
            use.access = READ_WRITE
        i += 1
    return i
