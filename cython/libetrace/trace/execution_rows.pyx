# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A process's events into the rows of its executions.

One walk over the events follows descriptors, forks and CPUs; then the merged records of files become
rows. What the columns mean: docs/image.md.
"""
from libc.string cimport memset

from libetrace.trace.descriptors cimport (
    BEGUN, EMPTIED, GONE, NO_CHANGE, Record, Use, apply_event, descriptors_collect,
    descriptors_empty, descriptors_end, descriptors_free, descriptors_init, next_use,
)
from libetrace.image.column_builder cimport NONE, add8, add16, add32, add64
from libetrace.trace.events cimport (
    ETRACE_EV_NEW_PROC, ETRACE_EV_SCHED_FORK, ETRACE_EV_USAGE, ETRACE_EV_WRITTEN,
)
from libetrace.trace.merged_records cimport (
    Key, Merged, find_uses, find_write_ends, fold_records, merge_records, merging_begin,
    merging_free, sort_records,
)
from libetrace.trace.verifier cimport find_inherited
from libetrace.core.memory cimport buffer_add, buffer_free, spill_step
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
    EXECUTIONS_STATUS, EXECUTIONS_UPID, FORK_TIMES_TIME_NS, INHERITED_DESCRIPTOR, INHERITED_EXECUTION, INHERITED_MODE,
    INHERITED_PATH, OPENS_CLOSE_NS, OPENS_EXECUTION, OPENS_MODE, OPENS_OPEN_NS, OPENS_ORIGINAL,
    OPENS_PATH, OPENS_SIZE, OPENS_UNTIL_NS, OPEN_USES_BEGIN_NS, OPEN_USES_END_NS, OPEN_USES_MODE,
    OPEN_USES_OPEN, PIPE_READERS_EXECUTION, USAGE_USER_NS, WRITTEN_CUT_BYTES,
    WRITTEN_DESCRIPTOR, WRITTEN_EXECUTION, WRITTEN_STRING,
)


cdef int builder_init(Builder *builder, Trace *trace) noexcept nogil:
    memset(builder, 0, sizeof(builder[0]))
    builder.trace = trace
    return descriptors_init(&builder.table, trace.seed, &builder.records, False, &builder.log)


cdef void builder_free(Builder *builder) noexcept nogil:
    cdef int i
    descriptors_free(&builder.table)
    buffer_free(&builder.records)
    buffer_free(&builder.files)
    merging_free(&builder.merging)
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
            or add64(&builder.columns[CHILDREN_FLAGS], flags) < 0 \
            or add64(&builder.columns[FORK_TIMES_TIME_NS], event.time) < 0:
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
        if builder.records.len >= builder.merging.fold_bytes and fold_records(
                &builder.merging, &builder.records, &builder.trace.spill) < 0:
            return -1
    if start_execution(builder, process.last.time, NULL) < 0:  # where the lists end
        return -1
    return 0 if is_grouped else end_files(builder)


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
    cdef u32 resolved = <u32>record.files
    cdef const Path *path = &builder.trace.paths[original]
    builder.trace.uses[FACTS][resolved] = True
    if not path.mode:  # a name that is gone: the file may have others
        path = &builder.trace.paths[resolved]
    if add_path(builder, OPENS_PATH, resolved) < 0 \
            or add_string(builder, OPENS_ORIGINAL, original) < 0 \
            or add64(&columns[OPENS_OPEN_NS], record.begin) < 0 \
            or add64(&columns[OPENS_CLOSE_NS], record.end) < 0 \
            or add8(&columns[OPENS_MODE], <u8>(path.mode | merged.access)) < 0 \
            or add64(&columns[OPENS_SIZE], path.size) < 0 \
            or add32(&columns[OPENS_EXECUTION], <s32>row) < 0:
        return -1
    return add64(&columns[OPENS_UNTIL_NS], merged.last)


# The uses of the open that comes next, when they are several.
cdef int add_uses(Builder *builder, const Record *records, const Key *keys, s64 n) noexcept nogil:
    cdef Buffer *columns = builder.columns
    cdef s32 row = <s32>n_rows(builder, OPENS_PATH, sizeof(u32))
    cdef const Use *uses
    cdef Use use
    cdef s64 at = 0
    if n == 1:
        return 0
    uses = find_uses(&builder.merging, records, keys, n)
    if uses == NULL:
        return -1
    while at < n:
        at += next_use(uses + at, n - at, &builder.merging.write_ends, &use)
        if use.record == uses[0].record and at == n:  # all are one
            return 0
        if add32(&columns[OPEN_USES_OPEN], row) < 0 \
                or add64(&columns[OPEN_USES_BEGIN_NS], use.begin) < 0 \
                or add64(&columns[OPEN_USES_END_NS], use.end) < 0 \
                or add8(&columns[OPEN_USES_MODE], use.access) < 0:
            return -1
    return 0


# The opens of one execution, from keys[0] on; returns how many keys they take, -1 without memory.
cdef s64 add_opens(Builder *builder, const Record *records, const Key *keys, u32 index,
                   u32 row) noexcept nogil:
    cdef Merged merged
    cdef s64 n = 0
    cdef s64 n_merged
    if keys[0].index == index and find_write_ends(&builder.merging, records, keys) < 0:
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


cdef int add_arguments(Builder *builder, const Program *program, u32 n) noexcept nogil:
    cdef const u32 *ranks
    cdef u32 i
    if program == NULL:
        return 0
    ranks = builder.trace.chunks[program.chunk].ranks[0]
    for i in range(n):
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
        return add_arguments(builder, process.inherited, process.n_inherited_arguments)
    ranks = builder.trace.chunks[program.chunk].ranks[0]
    binary = ranks[program.names[0]]
    if binary == builder.trace.empty:
        if add32(&builder.columns[EXECUTIONS_BINARY], NONE) < 0:
            return -1
    elif add_path(builder, EXECUTIONS_BINARY, binary) < 0:
        return -1
    if add_string(builder, EXECUTIONS_CWD, ranks[program.names[2]]) < 0:
        return -1
    return add_arguments(builder, program, program.n_arguments)


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
    merging_begin(&builder.merging, &builder.trace.spill)
    builder.next_wanted = 0
    memset(builder.used, 0, sizeof(builder.used))
    if walk(builder, number) < 0:
        return NULL
    records[0] = &builder.records
    if builder.grouped != NULL and builder.grouped[number].len:
        records[0] = &builder.grouped[number]
    return sort_records(&builder.merging, records[0])


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
