# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A process's events into the rows of its executions.

One walk over the events follows descriptors, forks and CPUs; then the records of files are sorted by
execution and path, and become rows. What the columns mean: docs/image.md.
"""
from libc.string cimport memset

from libetrace.trace.descriptors cimport (
    BEGUN, EMPTIED, GONE, NO_CHANGE, Record, Use, add_write_end, apply_event, descriptors_collect,
    descriptors_empty, descriptors_end, descriptors_free, descriptors_init, has_end, last_use,
    next_use, sort_stamps, sort_uses,
)
from libetrace.image.column_builder cimport NONE, add8, add16, add32, add64
from libetrace.trace.events cimport (
    ETRACE_EV_NEW_PROC, ETRACE_EV_SCHED_FORK, ETRACE_EV_USAGE, ETRACE_EV_WRITTEN,
)
from libetrace.trace.verifier cimport find_inherited
from libetrace.core.memory cimport Spill, buffer_add, buffer_free, buffer_reserve, spill_step
from libetrace.trace.trace cimport (
    ACCESS, FACTS, IS_CLONE, NO_PROCESS, PATH, STRING, Event, Path, Process, UsageSums, Wanted,
    find_process, has_rows,
)
from libetrace.core.types cimport MAX_RSS, N_USAGE, s16, s32, u8
from libetrace.image.schema cimport (
    ARGUMENTS_STRING, CHANGES_KIND, CHANGES_NAME, CHANGES_OPEN, CHANGES_TIME_NS,
    CHILDREN_EXECUTION, CHILDREN_FLAGS, CHILDREN_UPID, CPUS_CPU, CPUS_TIME_NS,
    EXECUTIONS_ARGV_START, EXECUTIONS_BINARY, EXECUTIONS_CHILDREN_START, EXECUTIONS_CPUS_START,
    EXECUTIONS_CWD, EXECUTIONS_ELAPSED_NS, EXECUTIONS_INDEX, EXECUTIONS_INHERITED_START,
    EXECUTIONS_OPENS_START, EXECUTIONS_PARENT, EXECUTIONS_READERS_START, EXECUTIONS_START_NS,
    EXECUTIONS_STATUS, EXECUTIONS_UPID, INHERITED_DESCRIPTOR, INHERITED_EXECUTION, INHERITED_MODE,
    INHERITED_PATH, OPENS_CLOSE_NS, OPENS_EXECUTION, OPENS_MODE, OPENS_OPEN_NS, OPENS_ORIGINAL,
    OPENS_PATH, OPENS_SIZE, OPENS_UNTIL_NS, OPEN_USES_BEGIN_NS, OPEN_USES_END_NS, OPEN_USES_MODE,
    OPEN_USES_OPEN, PIPE_READERS_EXECUTION, USAGE_USER_NS, WRITTEN_CUT_BYTES,
    WRITTEN_DESCRIPTOR, WRITTEN_EXECUTION, WRITTEN_STRING,
)

cdef enum:
    READ = 0
    READ_WRITE = 2
    RUN = 12  # sorted by insertion
    FOLD_BYTES = 16 << 20  # of records of one process


# The combined record of one pair of paths, and which records decided it.
cdef struct Merged:
    const Record *first
    s64 begin  # of the first use
    s64 last  # end of the last use
    bint has_changes
    u8 access
    const Record *earliest
    const Record *latest
    const Record *other  # the first one with another access


cdef int builder_init(Builder *builder, Trace *trace) noexcept nogil:
    memset(builder, 0, sizeof(builder[0]))
    builder.trace = trace
    return descriptors_init(&builder.table, trace.seed, &builder.records, False, &builder.log)


cdef void builder_free(Builder *builder) noexcept nogil:
    cdef int i
    descriptors_free(&builder.table)
    buffer_free(&builder.records)
    buffer_free(&builder.files)
    buffer_free(&builder.keys)
    buffer_free(&builder.spare)
    buffer_free(&builder.kept)
    buffer_free(&builder.uses)
    buffer_free(&builder.write_ends)
    buffer_free(&builder.starts)
    for i in range(N_COLUMNS):
        buffer_free(&builder.columns[i])


# ---- strings and paths ----


cdef inline int add_string(Builder *builder, int column, u32 number) noexcept nogil:
    builder.trace.uses[STRING][number] = True
    return add32(&builder.columns[column], <s32>number)


cdef inline int add_path(Builder *builder, int column, u32 number) noexcept nogil:
    builder.trace.uses[PATH][number] = True
    return add_string(builder, column, number)


# ---- the walk over the events ----


cdef inline u64 n_rows(const Builder *builder, int column, size_t n_bytes) noexcept nogil:
    return builder.columns[column].len / n_bytes


cdef int start_execution(Builder *builder, s64 time, const Program *program) noexcept nogil:
    cdef Start start
    start.time = time
    start.program = program
    start.usage = NULL
    start.child = n_rows(builder, CHILDREN_UPID, sizeof(s64))
    start.cpu = n_rows(builder, CPUS_CPU, sizeof(u32))
    return buffer_add(&builder.starts, &start, sizeof(start))


cdef int add_cpu(Builder *builder, const Event *event) noexcept nogil:
    if add32(&builder.columns[CPUS_CPU], <s32>event.cpu) < 0:
        return -1
    return add64(&builder.columns[CPUS_TIME_NS], event.time - builder.trace.start)


cdef void note_usage(Builder *builder, const Event *event) noexcept nogil:
    cdef Start *starts = <Start *>builder.starts.data
    starts[builder.starts.len / sizeof(Start) - 1].usage = event.payload.usage


cdef s32 row_of_child(const Trace *trace, s64 upid) noexcept nogil:
    cdef u32 number = find_process(trace, upid)
    if number == NO_PROCESS or not has_rows(&trace.processes[number]):
        return NONE
    return <s32>trace.processes[number].first_execution


cdef int add_child(Builder *builder, const Event *event, const Event *before) noexcept nogil:
    cdef s64 flags = before.payload.number if event.access & IS_CLONE else 0
    if add64(&builder.columns[CHILDREN_UPID], event.payload.number) < 0 \
            or add64(&builder.columns[CHILDREN_FLAGS], flags) < 0:
        return -1
    return add32(&builder.columns[CHILDREN_EXECUTION],
                 row_of_child(builder.trace, event.payload.number))


cdef int add_written(Builder *builder, const Event *event, u32 row) noexcept nogil:
    cdef u32 text = builder.trace.chunks[event.chunk].ranks[0][<u32>event.fd2]
    if add32(&builder.columns[WRITTEN_EXECUTION], <s32>row) < 0 \
            or add8(&builder.columns[WRITTEN_DESCRIPTOR], <u8>event.fd) < 0 \
            or add64(&builder.columns[WRITTEN_CUT_BYTES], event.payload.number) < 0:
        return -1
    return add_string(builder, WRITTEN_STRING, text)


cdef int end_files(Builder *builder) noexcept nogil:
    builder.files.len = 0
    if descriptors_collect(&builder.table, &builder.files) < 0:
        return -1
    descriptors_empty(&builder.table)
    return descriptors_end(builder.trace, &builder.table, &builder.files)


cdef int walk(Builder *builder, u32 number) noexcept nogil:
    cdef const Process *process = &builder.trace.processes[number]
    cdef bint is_grouped = builder.grouped != NULL and (
        process.group != number or process.next_in_group != NO_PROCESS)
    cdef const Event *event = process.first
    cdef const Event *before = NULL
    cdef u32 index = 0
    cdef u32 cpu = 0
    cdef bint is_first = True
    cdef u32 n_steps = 0
    if start_execution(builder, event.time, NULL) < 0:
        return -1
    while event != NULL:
        if event.kind == ETRACE_EV_NEW_PROC:
            index += 1
            is_first = True
            if start_execution(builder, event.time, event.payload.program) < 0:
                return -1
        elif event.kind == ETRACE_EV_SCHED_FORK:
            if add_child(builder, event, before) < 0:
                return -1
        elif event.kind == ETRACE_EV_USAGE:
            note_usage(builder, event)
        elif event.kind == ETRACE_EV_WRITTEN:
            if add_written(builder, event, process.first_execution + index) < 0:
                return -1
        elif not is_grouped and apply_event(builder.trace, &builder.table, number, index, event,
                                            before) < 0:
            return -1
        if event.kind not in (ETRACE_EV_USAGE, ETRACE_EV_WRITTEN) \
                and (is_first or event.cpu != cpu):
            cpu = event.cpu
            is_first = False
            if add_cpu(builder, event) < 0:
                return -1
        before = event
        event = event.next
        spill_step(&builder.trace.spill, &n_steps)
        if builder.records.len >= builder.fold_bytes and fold_records(builder) < 0:
            return -1
    if start_execution(builder, process.last.time, NULL) < 0:  # where the lists end
        return -1
    return 0 if is_grouped else end_files(builder)


# ---- records in order ----


cdef inline bint is_before(const Key *a, const Key *b) noexcept nogil:
    if a.index != b.index:
        return a.index < b.index
    return a.files < b.files


cdef void sort_run(Key *keys, size_t n) noexcept nogil:
    cdef Key key
    cdef size_t i
    cdef size_t at
    for i in range(1, n):
        key = keys[i]
        at = i
        while at and is_before(&key, &keys[at - 1]):
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key


cdef void merge_runs(const Key *keys, size_t middle, size_t n, Key *to) noexcept nogil:
    cdef size_t a = 0
    cdef size_t b = middle
    cdef size_t i
    cdef bint takes_b
    for i in range(n):
        takes_b = a == middle or (b < n and is_before(&keys[b], &keys[a]))
        to[i] = keys[b] if takes_b else keys[a]
        b += takes_b
        a += not takes_b


# Stable: of equal keys the record made first comes first. Returns the array that holds the result.
cdef Key *sort_keys(Key *keys, size_t n, Key *spare) noexcept nogil:
    cdef size_t width = RUN
    cdef size_t at
    cdef Key *other
    at = 0
    while at < n:
        sort_run(keys + at, min(<size_t>RUN, n - at))
        at += RUN
    while width < n:
        at = 0
        while at < n:
            merge_runs(keys + at, min(width, n - at), min(2 * width, n - at), spare + at)
            at += 2 * width
        other = keys
        keys = spare
        spare = other
        width *= 2
    return keys


# The records in order of execution and path; NULL when there is no memory.
cdef Key *sort_records(Builder *builder, const Buffer *records) noexcept nogil:
    cdef size_t n = records.len / sizeof(Record)
    cdef const Record *record = <const Record *>records.data
    cdef Key *keys
    cdef size_t i
    builder.keys.len = builder.spare.len = 0
    if buffer_reserve(&builder.keys, (n + 1) * sizeof(Key)) < 0:
        return NULL
    if buffer_reserve(&builder.spare, (n + 1) * sizeof(Key)) < 0:
        return NULL
    keys = <Key *>builder.keys.data
    for i in range(n):
        keys[i].files = record[i].files
        keys[i].index = record[i].index
        keys[i].record = <u32>i
    keys = sort_keys(keys, n, <Key *>builder.spare.data)
    keys[n].index = 0xffffffff
    return keys


# ---- opens ----


cdef int add_change(Builder *builder, u8 change, s64 time, u32 name) noexcept nogil:
    cdef Buffer *columns = builder.columns
    if add32(&columns[CHANGES_OPEN], <s32>n_rows(builder, OPENS_PATH, sizeof(u32))) < 0 \
            or add8(&columns[CHANGES_KIND], change) < 0 \
            or add64(&columns[CHANGES_TIME_NS], time) < 0:
        return -1
    if change in (EMPTIED, GONE, BEGUN):
        return add32(&columns[CHANGES_NAME], NONE)
    return add_string(builder, CHANGES_NAME, name)


# Changes of the open that comes next: of the records from keys[0] to keys[n].
cdef int add_changes(Builder *builder, const Record *records, const Key *keys, s64 n,
                     const Merged *merged) noexcept nogil:
    cdef const Record *record
    cdef s64 i
    if merged.begin < merged.first.begin and add_change(builder, BEGUN, merged.begin, 0) < 0:
        return -1
    for i in range(n if merged.has_changes else 0):
        record = &records[keys[i].record]
        if record.is_copy or record.change == NO_CHANGE:
            continue
        if add_change(builder, record.change, record.begin, record.name) < 0:
            return -1
    return 0


cdef int add_open(Builder *builder, const Merged *merged, u32 row) noexcept nogil:
    cdef Buffer *columns = builder.columns
    cdef const Record *record = merged.first
    cdef u32 original = <u32>(record.files >> 32)
    cdef const Path *path = &builder.trace.paths[original]
    if original == <u32>record.files:
        builder.trace.uses[FACTS][original] = True
    if add_path(builder, OPENS_PATH, <u32>record.files) < 0 \
            or add_string(builder, OPENS_ORIGINAL, original) < 0 \
            or add64(&columns[OPENS_OPEN_NS], record.begin) < 0 \
            or add64(&columns[OPENS_CLOSE_NS], record.end) < 0 \
            or add8(&columns[OPENS_MODE], <u8>(path.mode | merged.access)) < 0 \
            or add64(&columns[OPENS_SIZE], path.size) < 0 \
            or add32(&columns[OPENS_EXECUTION], <s32>row) < 0:
        return -1
    return add64(&columns[OPENS_UNTIL_NS], merged.last)


# Combines all records of one pair of paths, from keys[0] on; returns their number.
cdef s64 merge_records(const Record *records, const Key *keys, Merged *merged) noexcept nogil:
    cdef const Record *record
    cdef s64 n = 0
    memset(merged, 0, sizeof(merged[0]))
    while keys[n].index == keys[0].index and keys[n].files == keys[0].files:
        record = &records[keys[n].record]
        if merged.latest == NULL or last_use(record) > merged.last:
            merged.last = max(merged.last, last_use(record))
            merged.latest = record
        if not record.is_copy:
            merge_open(merged, record)
        n += 1
    return n


cdef inline void merge_open(Merged *merged, const Record *record) noexcept nogil:
    if merged.first == NULL:
        merged.first = merged.earliest = record
        merged.begin = record.begin
        merged.access = record.access
    elif record.begin < merged.begin:
        merged.earliest = record
        merged.begin = record.begin
    if record.access != merged.access:
        if merged.other == NULL:
            merged.other = record
        merged.access = READ_WRITE
    merged.has_changes |= record.change != NO_CHANGE


# ---- uses apart ----


# The ends of the writes of the execution of keys[0], in order of time.
cdef int find_write_ends(Builder *builder, const Record *records, const Key *keys) noexcept nogil:
    cdef size_t i = 0
    builder.write_ends.len = 0
    while keys[i].index == keys[0].index:
        if add_write_end(&records[keys[i].record], &builder.write_ends) < 0:
            return -1
        i += 1
    sort_stamps(&builder.write_ends)
    return 0


# The uses of n records in order of time; NULL when there is no memory.
cdef const Use *find_uses(Builder *builder, const Record *records, const Key *keys,
                          s64 n) noexcept nogil:
    cdef const Record *record
    cdef Use use
    cdef s64 i
    builder.uses.len = 0
    for i in range(n):
        record = &records[keys[i].record]
        use.begin, use.end = record.begin, last_use(record)
        use.record = use.last = keys[i].record
        use.access = record.access
        if buffer_add(&builder.uses, &use, sizeof(use)) < 0:
            return NULL
    sort_uses(<Use *>builder.uses.data, n)
    return <const Use *>builder.uses.data


# The uses of the open that comes next, when they are several.
cdef int add_uses(Builder *builder, const Record *records, const Key *keys, s64 n) noexcept nogil:
    cdef Buffer *columns = builder.columns
    cdef s32 row = <s32>n_rows(builder, OPENS_PATH, sizeof(u32))
    cdef const Use *uses
    cdef Use use
    cdef s64 at = 0
    if n == 1:
        return 0
    uses = find_uses(builder, records, keys, n)
    if uses == NULL:
        return -1
    while at < n:
        at += next_use(uses + at, n - at, &builder.write_ends, &use)
        if use.record == uses[0].record and at == n:  # all are one
            return 0
        if add32(&columns[OPEN_USES_OPEN], row) < 0 \
                or add64(&columns[OPEN_USES_BEGIN_NS], use.begin) < 0 \
                or add64(&columns[OPEN_USES_END_NS], use.end) < 0 \
                or add8(&columns[OPEN_USES_MODE], use.access) < 0:
            return -1
    return 0


# ---- a process of very many uses ----


# Records up to this are not folded: no more than the budget of what is in memory.
cdef u64 least_bytes(const Builder *builder) noexcept nogil:
    cdef const Spill *spill = &builder.trace.spill
    return FOLD_BYTES if spill.fd < 0 else min(<u64>FOLD_BYTES, spill.budget)


# Keeps the records that decide what all of them are merged into, so that memory grows with the files
# that a process reads and with its writes, not with how often it reads them.
cdef int fold_records(Builder *builder) noexcept nogil:
    cdef Record *records = <Record *>builder.records.data
    cdef size_t n = builder.records.len / sizeof(Record)
    cdef const Key *keys = sort_records(builder, &builder.records)
    cdef u8 *kept
    cdef size_t n_kept = 0
    cdef size_t i
    builder.kept.len = 0
    if keys == NULL or buffer_reserve(&builder.kept, n) < 0:
        return -1
    kept = <u8 *>builder.kept.data
    memset(kept, 0, n)
    if mark_kept(builder, records, keys, n, kept) < 0:
        return -1
    for i in range(n):
        if kept[i]:
            records[n_kept] = records[i]
            n_kept += 1
    builder.records.len = n_kept * sizeof(Record)
    builder.fold_bytes = max(least_bytes(builder), 2 * <u64>builder.records.len)
    return 0


# Of uses that read its two ends are enough when nothing was written in between.
cdef int mark_uses(Builder *builder, const Record *records, const Key *keys, s64 n,
                   u8 *kept) noexcept nogil:
    cdef const Use *uses = find_uses(builder, records, keys, n)
    cdef Use use
    cdef s64 at = 0
    cdef s64 i, end
    cdef bint is_whole
    if uses == NULL:
        return -1
    while at < n:
        end = at + next_use(uses + at, n - at, &builder.write_ends, &use)
        is_whole = use.access != READ or has_end(&builder.write_ends, use.begin, use.end)
        kept[use.record] = kept[use.last] = True
        for i in range(at, end if is_whole else at):
            kept[uses[i].record] = True
        at = end
    return 0


cdef int mark_kept(Builder *builder, const Record *records, const Key *keys, size_t n,
                   u8 *kept) noexcept nogil:
    cdef Merged merged
    cdef const Record *record
    cdef size_t at = 0
    cdef s64 n_merged, i
    while at < n:
        if (at == 0 or keys[at].index != keys[at - 1].index) and find_write_ends(
                builder, records, keys + at) < 0:
            return -1
        n_merged = merge_records(records, keys + at, &merged)
        if mark_uses(builder, records, keys + at, n_merged, kept) < 0:
            return -1
        kept[merged.latest - records] = True
        if merged.first != NULL:
            kept[merged.first - records] = kept[merged.earliest - records] = True
        if merged.other != NULL:
            kept[merged.other - records] = True
        for i in range(n_merged if merged.has_changes else 0):
            record = &records[keys[at + i].record]
            kept[record - records] |= not record.is_copy and record.change != NO_CHANGE
        at += n_merged
    return 0


# The opens of one execution, from keys[0] on; returns how many keys they take, -1 without memory.
cdef s64 add_opens(Builder *builder, const Record *records, const Key *keys, u32 index,
                   u32 row) noexcept nogil:
    cdef Merged merged
    cdef s64 n = 0
    cdef s64 n_merged
    if keys[0].index == index and find_write_ends(builder, records, keys) < 0:
        return -1
    while keys[n].index == index:
        n_merged = merge_records(records, keys + n, &merged)
        if merged.first != NULL and (
                add_changes(builder, records, keys + n, n_merged, &merged) < 0
                or add_uses(builder, records, keys + n, n_merged) < 0
                or add_open(builder, &merged, row) < 0):
            return -1
        n += n_merged
    return n


# ---- the rest of an execution ----


# First edge of an execution, by bisection.
cdef u64 first_edge(const Trace *trace, u32 row) noexcept nogil:
    cdef u64 low = 0
    cdef u64 high = trace.n_edges
    cdef u64 middle
    while low < high:
        middle = (low + high) / 2
        if trace.edges[middle].writer < row:
            low = middle + 1
        else:
            high = middle
    return low


cdef int add_readers(Builder *builder, u32 row) noexcept nogil:
    cdef const Trace *trace = builder.trace
    cdef u64 i = first_edge(trace, row)
    while i < trace.n_edges and trace.edges[i].writer == row:
        if add32(&builder.columns[PIPE_READERS_EXECUTION], <s32>trace.edges[i].reader) < 0:
            return -1
        i += 1
    return 0


cdef int add_held(Builder *builder, u8 fd, const Event *opened, u32 row) noexcept nogil:
    cdef u32 path = builder.trace.chunks[opened.chunk].ranks[0][opened.payload.name.first]
    if add_path(builder, INHERITED_PATH, path) < 0 \
            or add32(&builder.columns[INHERITED_EXECUTION], <s32>row) < 0 \
            or add8(&builder.columns[INHERITED_DESCRIPTOR], fd) < 0:
        return -1
    return add8(&builder.columns[INHERITED_MODE], opened.access & ACCESS)


# Files that the execution began with.
cdef int add_inherited(Builder *builder, u32 number, u32 index, u32 row) noexcept nogil:
    cdef const Process *process = &builder.trace.processes[number]
    cdef const Wanted *wanted = process.wanted + builder.next_wanted
    cdef const Event *opened
    while builder.next_wanted < process.n_wanted and wanted.index == index:
        opened = find_inherited(builder.trace, number, wanted)
        if opened != NULL and add_held(builder, wanted.fd, opened, row) < 0:
            return -1
        wanted += 1
        builder.next_wanted += 1
    return 0


cdef int add_arguments(Builder *builder, const Program *program) noexcept nogil:
    cdef const u32 *ranks
    cdef u32 i
    if program == NULL:
        return 0
    ranks = builder.trace.chunks[program.chunk].ranks[0]
    for i in range(program.n_arguments):
        if add_string(builder, ARGUMENTS_STRING, ranks[program.arguments[i]]) < 0:
            return -1
    return 0


# Binary, working directory and arguments; before its first exec a process has those of its parent.
cdef int add_program(Builder *builder, const Process *process,
                     const Program *program) noexcept nogil:
    cdef const u32 *ranks
    cdef u32 binary
    if program == NULL:
        if add32(&builder.columns[EXECUTIONS_BINARY], NONE) < 0 \
                or add_string(builder, EXECUTIONS_CWD, builder.trace.empty) < 0:
            return -1
        return add_arguments(builder, process.inherited)
    ranks = builder.trace.chunks[program.chunk].ranks[0]
    binary = ranks[program.names[0]]
    if binary == builder.trace.empty:
        if add32(&builder.columns[EXECUTIONS_BINARY], NONE) < 0:
            return -1
    elif add_path(builder, EXECUTIONS_BINARY, binary) < 0:
        return -1
    if add_string(builder, EXECUTIONS_CWD, ranks[program.names[2]]) < 0:
        return -1
    return add_arguments(builder, program)


cdef s32 row_of_parent(const Trace *trace, const Process *process) noexcept nogil:
    if process.parent == NO_PROCESS:
        return NONE
    return <s32>(trace.processes[process.parent].first_execution + process.parent_index)


cdef int add_numbers(Builder *builder, const Process *process, u32 index,
                     const Start *start) noexcept nogil:
    cdef Buffer *columns = builder.columns
    cdef s64 end = start[1].time
    cdef s64 status = NONE
    if index == process.n_programs:
        if process.has_exit:
            status = <s64>process.exit_status
        else:
            end = builder.trace.end
    if add64(&columns[EXECUTIONS_UPID], process.upid) < 0 \
            or add32(&columns[EXECUTIONS_INDEX], <s32>index) < 0 \
            or add64(&columns[EXECUTIONS_START_NS], start.time - builder.trace.start) < 0 \
            or add64(&columns[EXECUTIONS_ELAPSED_NS], end - start.time) < 0 \
            or add32(&columns[EXECUTIONS_PARENT],
                     row_of_parent(builder.trace, process)) < 0:
        return -1
    return add16(&columns[EXECUTIONS_STATUS], <s16>status)


# What an execution used of one thing: since the last one that the trace reports of the process.
cdef s64 used_by(Builder *builder, const UsageSums *usage, int which) noexcept nogil:
    cdef s64 sum = NONE if usage == NULL else usage.values[which]
    cdef s64 before = builder.used[which]
    if which == MAX_RSS or sum == NONE or sum < before:
        return sum if which == MAX_RSS else NONE
    builder.used[which] = sum
    return sum - before


# The row of `usage`, in a trace that has any.
cdef int add_usage(Builder *builder, const Start *start) noexcept nogil:
    cdef int i
    if not builder.trace.n_kinds_seen[<int>ETRACE_EV_USAGE]:
        return 0
    for i in range(N_USAGE):
        if add64(&builder.columns[USAGE_USER_NS + i], used_by(builder, start.usage, i)) < 0:
            return -1
    return 0


# Where the lists of the execution end, in rows of this part.
cdef int end_lists(Builder *builder, const Start *start) noexcept nogil:
    cdef Buffer *columns = builder.columns
    if add64(&columns[EXECUTIONS_ARGV_START],
             n_rows(builder, ARGUMENTS_STRING, sizeof(u32))) < 0 \
            or add64(&columns[EXECUTIONS_OPENS_START],
                     n_rows(builder, OPENS_PATH, sizeof(u32))) < 0 \
            or add64(&columns[EXECUTIONS_CHILDREN_START], start[1].child) < 0 \
            or add64(&columns[EXECUTIONS_INHERITED_START],
                     n_rows(builder, INHERITED_PATH, sizeof(u32))) < 0 \
            or add64(&columns[EXECUTIONS_READERS_START],
                     n_rows(builder, PIPE_READERS_EXECUTION, sizeof(u32))) < 0:
        return -1
    return add64(&columns[EXECUTIONS_CPUS_START], start[1].cpu)


# An execution but its opens.
cdef int add_execution(Builder *builder, u32 number, u32 index) noexcept nogil:
    cdef const Process *process = &builder.trace.processes[number]
    cdef const Start *start = &(<const Start *>builder.starts.data)[index]
    cdef u32 row = process.first_execution + index
    if add_numbers(builder, process, index, start) < 0 or add_usage(builder, start) < 0 \
            or add_program(builder, process, start.program) < 0 \
            or add_readers(builder, row) < 0 or add_inherited(builder, number, index, row) < 0:
        return -1
    return end_lists(builder, start)


# The records of a process as keys in order; NULL when there is no memory.
cdef const Key *find_records(Builder *builder, u32 number, const Buffer **records) noexcept nogil:
    builder.records.len = builder.starts.len = 0
    builder.fold_bytes = least_bytes(builder)
    builder.next_wanted = 0
    memset(builder.used, 0, sizeof(builder.used))
    if walk(builder, number) < 0:
        return NULL
    records[0] = &builder.records
    if builder.grouped != NULL and builder.grouped[number].len:
        records[0] = &builder.grouped[number]
    return sort_records(builder, records[0])


cdef int build_process(Builder *builder, u32 number) noexcept nogil:
    cdef const Process *process = &builder.trace.processes[number]
    cdef const Buffer *records = NULL
    cdef const Key *keys = find_records(builder, number, &records)
    cdef u32 index
    cdef s64 n
    if keys == NULL:
        return -1
    for index in range(process.n_programs + 1):
        n = add_opens(builder, <const Record *>records.data, keys, index,
                      process.first_execution + index)
        if n < 0 or add_execution(builder, number, index) < 0:
            return -1
        keys += n
    return 0
