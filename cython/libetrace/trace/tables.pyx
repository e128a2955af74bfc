# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Makes the tables of an image in parts, one for a range of processes.

Threads build parts in any order. Which strings are used is known when all parts are there: then
numbers of paths become rows of `strings` and `paths`, and rows of a part rows of the whole table.
`environment` comes from the groups of upid 0, `mounts` from the events of all processes.
"""
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcpy, memset

from libetrace.core.interned cimport NO_NAME
from libetrace.core.limits cimport OPENS as MOST_OPENS, ceilings, pass_limit
from libetrace.core.memory cimport (
    buffer_add, buffer_free, spill_drop, spill_drop_all, spill_give, spill_step, spill_take,
)
from libetrace.core.scan cimport etrace_take
from libetrace.core.types cimport s32, s64, u8
from libetrace.image.column_builder cimport (
    NONE, add32, add64, add8, begin_path_opens, count_path_opens, place_path_opens,
    renumber_columns, sum_path_opens,
)
from libetrace.image.schema cimport (
    ARGUMENTS_STRING, CHANGES_OPEN, CHILDREN_UPID, CPUS_CPU, ENVIRONMENT_STRING, ENVIRONMENT_UPID,
    EXECUTIONS_ARGV_START, EXECUTIONS_CHILDREN_START, EXECUTIONS_CPUS_START,
    EXECUTIONS_INHERITED_START, EXECUTIONS_OPENS_START, EXECUTIONS_READERS_START, EXISTS,
    INHERITED_PATH, MOUNTS_EXECUTION, MOUNTS_FLAGS, MOUNTS_KIND, MOUNTS_OK, MOUNTS_SOURCE,
    MOUNTS_TARGET, MOUNTS_TIME_NS, MOUNTS_TYPE, OPENS_PATH, OPEN_USES_OPEN, PATHS_MODE, PATHS_SIZE,
    PATHS_STRING, PIPE_READERS_EXECUTION, STRINGS_BYTES, STRINGS_START, TYPE,
)
from libetrace.trace.events cimport *
from libetrace.trace.execution_rows cimport Builder, build_process, builder_free, builder_init
from libetrace.trace.line_grammar cimport FIRST_DATA, forms
from libetrace.trace.thread_groups cimport group_records, has_groups
from libetrace.trace.trace cimport (
    FACTS, GOES_ON, HAS_FAILED, NO_ENVIRONMENT, NO_PROCESS, PATH, STRING, Event, Path,
    compare_events, event_line, find_process, has_rows, report_add,
)


# A process that was started with a variable.
cdef struct Holder:
    s64 upid
    u32 variable  # number of its path


cdef struct MountEntry:
    const Event *event
    u32 process
    u32 index
    bint is_ok


# ---- environment ----


cdef int compare_holders(const void *a, const void *b) noexcept nogil:
    cdef const Holder *x = <const Holder *>a
    cdef const Holder *y = <const Holder *>b
    if x.upid != y.upid:
        return -1 if x.upid < y.upid else 1
    return (x.variable > y.variable) - (x.variable < y.variable)


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


cdef int add_holder(Trace *trace, Buffer *columns, const Holder *holder) noexcept nogil:
    trace.uses[STRING][holder.variable] = True
    if add64(&columns[ENVIRONMENT_UPID], holder.upid) < 0:
        return -1
    return add32(&columns[ENVIRONMENT_STRING], <s32>holder.variable)


# In order, each once.
cdef int add_holders(Trace *trace, Buffer *columns, Buffer *holders) noexcept nogil:
    cdef const Holder *all_holders = <const Holder *>holders.data
    cdef size_t n = holders.len / sizeof(Holder)
    cdef size_t i
    if n:
        qsort(holders.data, n, sizeof(Holder), compare_holders)
    for i in range(n):
        if i and not compare_holders(&all_holders[i - 1], &all_holders[i]):
            continue
        if add_holder(trace, columns, &all_holders[i]) < 0:
            return -1
    return 0


cdef int add_environment(Trace *trace, Buffer *columns) noexcept nogil:
    cdef Buffer holders
    cdef int status
    memset(&holders, 0, sizeof(holders))
    status = collect_holders(trace, &holders)
    if status == 0:
        status = add_holders(trace, columns, &holders)
    buffer_free(&holders)
    return status


# ---- mounts ----


cdef int collect_mounts(Trace *trace, u32 number, Buffer *entries) noexcept nogil:
    cdef MountEntry entry
    cdef const Event *event = trace.processes[number].first
    cdef u32 n_steps = 0
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
        spill_step(&trace.spill, &n_steps)
    return 0


cdef int compare_mounts(const void *a, const void *b) noexcept nogil:
    return compare_events((<const MountEntry *>a).event, (<const MountEntry *>b).event)


# The number of a string of the event, NONE when it is absent.
cdef s32 find_name(Trace *trace, const Event *event, u32 wanted) noexcept nogil:
    cdef const u32 *ranks = trace.chunks[event.chunk].ranks[0]
    cdef u32 name
    cdef u32 i
    for i in range(forms.events[event.kind].n_data):
        name = event.payload.mount.names[i]
        if forms.events[event.kind].data[i] - <u32>FIRST_DATA == wanted and name != NO_NAME:
            trace.uses[STRING][ranks[name]] = True
            return <s32>ranks[name]
    return NONE


cdef int add_mount(Trace *trace, Buffer *columns, const MountEntry *entry) noexcept nogil:
    cdef const Event *event = entry.event
    cdef u32 row = trace.processes[entry.process].first_execution + entry.index
    if add32(&columns[MOUNTS_EXECUTION], <s32>row) < 0 \
            or add64(&columns[MOUNTS_TIME_NS], event.time) < 0 \
            or add8(&columns[MOUNTS_KIND], event.kind == ETRACE_EV_UMOUNT) < 0 \
            or add32(&columns[MOUNTS_SOURCE], find_name(trace, event, ETRACE_DATA_MS)) < 0 \
            or add32(&columns[MOUNTS_TARGET], find_name(trace, event, ETRACE_DATA_MT)) < 0 \
            or add32(&columns[MOUNTS_TYPE], find_name(trace, event, ETRACE_DATA_MX)) < 0 \
            or add64(&columns[MOUNTS_FLAGS], <s64>event.payload.mount.flags) < 0:
        return -1
    return add8(&columns[MOUNTS_OK], entry.is_ok)


cdef int add_entries(Trace *trace, Buffer *columns, Buffer *entries) noexcept nogil:
    cdef size_t n = entries.len / sizeof(MountEntry)
    cdef size_t i
    if n:
        qsort(entries.data, n, sizeof(MountEntry), compare_mounts)
    for i in range(n):
        if add_mount(trace, columns, &(<const MountEntry *>entries.data)[i]) < 0:
            return -1
    return 0


cdef int add_mounts(Trace *trace, Buffer *columns) noexcept nogil:
    cdef Buffer entries
    cdef int status = 0
    cdef u32 i
    memset(&entries, 0, sizeof(entries))
    if trace.n_kinds_seen[<int>ETRACE_EV_MOUNT] or trace.n_kinds_seen[<int>ETRACE_EV_UMOUNT]:
        for i in range(trace.n_processes):
            if status == 0:
                status = collect_mounts(trace, i, &entries)
    if status == 0:
        status = add_entries(trace, columns, &entries)
    buffer_free(&entries)
    return status


# ---- parts ----


cdef enum:
    PART_EVENTS = 1 << 16  # about a megabyte of rows
    PARTS_A_DROP = 4

# Columns X.start, the tables that they divide, and the bytes of a row there.
cdef int[N_LISTS] LIST_STARTS
LIST_STARTS[:] = [
    EXECUTIONS_OPENS_START, EXECUTIONS_ARGV_START, EXECUTIONS_CHILDREN_START,
    EXECUTIONS_INHERITED_START, EXECUTIONS_READERS_START, EXECUTIONS_CPUS_START,
]
cdef int[N_LISTS] LIST_ROWS
LIST_ROWS[:] = [
    OPENS_PATH, ARGUMENTS_STRING, CHILDREN_UPID, INHERITED_PATH, PIPE_READERS_EXECUTION, CPUS_CPU,
]
cdef size_t[N_LISTS] ROW_BYTES
ROW_BYTES[:] = [sizeof(u32), sizeof(u32), sizeof(s64), sizeof(u32), sizeof(u32), sizeof(u32)]


cdef int cut_ranges(Tables *tables, Trace *trace) noexcept nogil:
    cdef u64 n_events = PART_EVENTS
    cdef u32 i
    tables.ranges = <u32 *>malloc((<size_t>trace.n_processes + 2) * sizeof(u32))
    if tables.ranges == NULL:
        return -1
    for i in range(trace.n_processes):
        if n_events >= PART_EVENTS:
            tables.ranges[tables.n_parts] = i
            tables.n_parts += 1
            n_events = 0
        n_events += trace.processes[i].n_events
    tables.ranges[tables.n_parts] = trace.n_processes
    tables.parts = <Part *>calloc(tables.n_parts + 1, sizeof(Part))
    return 0 if tables.parts != NULL else -1


cdef int tables_init(Tables *tables, Trace *trace) noexcept nogil:
    if cut_ranges(tables, trace) < 0:
        return -1
    if not has_groups(trace):
        return 0
    tables.records = <Buffer *>calloc(<size_t>trace.n_processes + 1, sizeof(Buffer))
    if tables.records == NULL:
        return -1
    return group_records(trace, tables.records)


cdef void free_records(Tables *tables, const Trace *trace) noexcept nogil:
    cdef u32 i
    if tables.records != NULL:
        for i in range(trace.n_processes):
            buffer_free(&tables.records[i])
    free(tables.records)
    tables.records = NULL


cdef void tables_free(Tables *tables, const Trace *trace) noexcept nogil:
    cdef u64 i
    free_records(tables, trace)
    for i in range(tables.n_parts if tables.parts != NULL else 0):
        spill_give(&trace.spill, tables.parts[i].data)
    for i in range(<u64>N_COLUMNS):
        buffer_free(&tables.columns[i])
    free(tables.parts)
    free(tables.ranges)
    free(tables.rows)


# Moves the rows out of the builder.
cdef int keep_rows(Part *part, Builder *builder, Spill *spill) noexcept nogil:
    cdef int i
    for i in range(N_COLUMNS):
        part.len[i] = builder.columns[i].len
        part.start[i + 1] = part.start[i] + ((part.len[i] + 7) & ~<u64>7)
    part.data = <char *>spill_take(spill, part.start[N_COLUMNS] + 1)
    if part.data == NULL:
        return -1
    for i in range(N_COLUMNS):
        if part.len[i]:
            memcpy(part.data + part.start[i], builder.columns[i].data, part.len[i])
        builder.columns[i].len = 0
    spill_drop(spill, part.data, part.start[N_COLUMNS])
    return 0


cdef int build_part(Tables *tables, Trace *trace, Builder *builder, u64 number) noexcept nogil:
    cdef u32 i
    for i in range(tables.ranges[number], tables.ranges[number + 1]):
        if has_rows(&trace.processes[i]) and build_process(builder, i) < 0:
            return -1
    if number % PARTS_A_DROP == 0:
        spill_drop_all(&trace.spill)
    return keep_rows(&tables.parts[number], builder, &trace.spill)


cdef int build_parts(Tables *tables, Trace *trace) noexcept nogil:
    cdef Builder builder
    cdef u64 number
    cdef int status = builder_init(&builder, trace)
    builder.grouped = tables.records
    while status == 0 and not trace.load.cancelled and not trace.load.failed:
        number = etrace_take(&trace.load.taken)
        if number >= tables.n_parts:
            break
        status = build_part(tables, trace, &builder, number)
    builder_free(&builder)
    return status


# ---- strings and paths ----


cdef int add_string(Tables *tables, const Path *path) noexcept nogil:
    if buffer_add(&tables.columns[STRINGS_BYTES], path.bytes, path.len) < 0:
        return -1
    return add64(&tables.columns[STRINGS_START], tables.columns[STRINGS_BYTES].len)


cdef int add_path(Tables *tables, const Path *path, u32 string, bint has_facts) noexcept nogil:
    cdef u8 mode = <u8>(path.mode & (EXISTS | TYPE)) if has_facts else 0
    if add32(&tables.columns[PATHS_STRING], <s32>string) < 0 \
            or add8(&tables.columns[PATHS_MODE], mode) < 0:
        return -1
    return add64(&tables.columns[PATHS_SIZE], path.size if mode else 0)


cdef int number_strings(Tables *tables, const Trace *trace) noexcept nogil:
    cdef u32 *strings = tables.rows
    cdef u32 *paths = tables.rows + trace.n_paths
    cdef u32 n = 0
    cdef u32 i
    if add64(&tables.columns[STRINGS_START], 0) < 0:
        return -1
    for i in range(trace.n_paths):
        if not trace.uses[STRING][i]:
            continue
        strings[i] = n
        if add_string(tables, &trace.paths[i]) < 0:
            return -1
        if trace.uses[PATH][i]:
            paths[i] = <u32>tables.columns[PATHS_MODE].len
            if add_path(tables, &trace.paths[i], n, trace.uses[FACTS][i]) < 0:
                return -1
        n += 1
    return 0


# Every list begins at row 0 of the table that it divides.
cdef int begin_lists(Tables *tables) noexcept nogil:
    cdef int i
    for i in range(N_LISTS):
        if add64(&tables.columns[LIST_STARTS[i]], 0) < 0:
            return -1
    return 0


cdef int number_rows(Tables *tables, Trace *trace) noexcept nogil:
    free_records(tables, trace)
    if begin_lists(tables) < 0 or add_environment(trace, tables.columns) < 0 \
            or add_mounts(trace, tables.columns) < 0:
        return -1
    tables.rows = <u32 *>malloc((2 * <size_t>trace.n_paths + 1) * sizeof(u32))
    if tables.rows == NULL or number_strings(tables, trace) < 0:
        return -1
    renumber_columns(tables.columns, tables.rows, trace.n_paths)
    place_parts(tables)
    if tables.parts[tables.n_parts].first[OPENS] > ceilings[MOST_OPENS]:
        return pass_limit(MOST_OPENS)
    return 0


# ---- rows of whole tables ----


# Where the rows of each part begin.
cdef void place_parts(Tables *tables) noexcept nogil:
    cdef Part *part
    cdef u64 number
    cdef int i
    for number in range(tables.n_parts):
        part = &tables.parts[number]
        for i in range(N_LISTS):
            part[1].first[i] = part.first[i] + part.len[LIST_ROWS[i]] / ROW_BYTES[i]


cdef void move_opens(Part *part, int column) noexcept nogil:
    cdef u32 *opens = <u32 *>(part.data + part.start[column])
    cdef u64 row
    for row in range(part.len[column] / sizeof(u32)):
        opens[row] += <u32>part.first[OPENS]


cdef void move_rows(Part *part) noexcept nogil:
    cdef u64 *ends
    cdef u64 row
    cdef int i
    for i in range(N_LISTS):
        ends = <u64 *>(part.data + part.start[LIST_STARTS[i]])
        for row in range(part.len[LIST_STARTS[i]] / sizeof(u64)):
            ends[row] += part.first[i]
    move_opens(part, CHANGES_OPEN)
    move_opens(part, OPEN_USES_OPEN)


# A column of a part as renumber_columns() takes it.
cdef inline Buffer column_of(const Part *part, int column) noexcept nogil:
    cdef Buffer view
    view.data = part.data + part.start[column]
    view.len = view.cap = part.len[column]
    return view


cdef void renumber_part(Part *part, const u32 *rows, u32 n_paths) noexcept nogil:
    cdef Buffer columns[N_COLUMNS]
    cdef int i
    for i in range(N_COLUMNS):
        columns[i] = column_of(part, i)
    renumber_columns(columns, rows, n_paths)
    move_rows(part)


cdef int renumber_parts(Tables *tables, Trace *trace) noexcept nogil:
    cdef u64 number
    while not trace.load.cancelled:
        number = etrace_take(&trace.load.taken)
        if number >= tables.n_parts:
            break
        renumber_part(&tables.parts[number], tables.rows, trace.n_paths)
        spill_drop(&trace.spill, tables.parts[number].data, tables.parts[number].start[N_COLUMNS])
    return 0


cdef int index_opens(Tables *tables, const Spill *spill) noexcept nogil:
    cdef Buffer paths
    cdef u64 number
    if begin_path_opens(tables.columns, tables.parts[tables.n_parts].first[OPENS]) < 0:
        return -1
    for number in range(tables.n_parts):
        paths = column_of(&tables.parts[number], OPENS_PATH)
        count_path_opens(tables.columns, &paths)
    sum_path_opens(tables.columns)
    spill_drop_all(spill)
    for number in range(tables.n_parts):
        paths = column_of(&tables.parts[number], OPENS_PATH)
        place_path_opens(tables.columns, &paths, <u32>tables.parts[number].first[OPENS])
    return 0
