# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A process's events into the entries of its executions.

One walk over the events follows descriptors, forks and CPUs; then the records of files are sorted by
execution and path, and the text is written. Descriptions of the keys: docs/nfsdb-json.md.
"""
from libc.string cimport memcpy, memset

from libetrace.core.changes cimport CHANGE_LETTERS
from libetrace.trace.descriptors cimport (
    BEGUN, EMPTIED, GONE, NO_CHANGE, Record, apply_event, descriptors_collect, descriptors_empty, descriptors_end, descriptors_free,
    descriptors_init,
)
from libetrace.trace.events cimport (
    ETRACE_EV_NEW_PROC, ETRACE_EV_SCHED_FORK, ETRACE_EV_SYS_CLONE,
)
from libetrace.trace.inherited cimport find_inherited
from libetrace.core.memory cimport buffer_add, buffer_free, buffer_reserve
from libetrace.trace.event_model cimport ACCESS, IS_CLONE, Event
from libetrace.core.scan cimport (
    etrace_copy, etrace_put_decimal, etrace_put_text,
)
from libetrace.trace.trace cimport NO_PROCESS, Path, Process, Wanted
from libetrace.core.types cimport u8

cdef enum:
    READ_WRITE = 2
    FIXED_BYTES = 256  # more than the keys and numbers of one piece of text take
    RUN = 12  # sorted by insertion


# What the records of one pair of paths make.
cdef struct Merged:
    const Record *first
    s64 begin  # of the first use
    s64 last  # end of the last use
    bint has_changes
    u8 access


cdef int builder_init(Builder *builder, Trace *trace) noexcept nogil:
    memset(builder, 0, sizeof(builder[0]))
    builder.trace = trace
    return descriptors_init(&builder.table, trace.seed, &builder.records, False, &builder.log)


cdef void builder_free(Builder *builder) noexcept nogil:
    descriptors_free(&builder.table)
    buffer_free(&builder.records)
    buffer_free(&builder.files)
    buffer_free(&builder.keys)
    buffer_free(&builder.spare)
    buffer_free(&builder.starts)
    buffer_free(&builder.forks)
    buffer_free(&builder.cpus)
    buffer_free(&builder.out)


cdef inline char *put_signed(char *to, s64 value) noexcept nogil:
    if value < 0:
        to[0] = c'-'
        return etrace_put_decimal(to + 1, 0 - <u64>value)
    return etrace_put_decimal(to, <u64>value)


cdef int start_execution(Builder *builder, s64 time, const Program *program) noexcept nogil:
    cdef Start start
    start.time = time
    start.program = program
    start.forks = builder.forks.len
    start.cpus = builder.cpus.len
    return buffer_add(&builder.starts, &start, sizeof(start))


cdef int add_cpu(Builder *builder, const Event *event, bint is_first) noexcept nogil:
    cdef char *to
    if buffer_reserve(&builder.cpus, FIXED_BYTES) < 0:
        return -1
    to = builder.cpus.data + builder.cpus.len
    to = etrace_put_text(to, b'{"c":' if is_first else b',{"c":')
    to = etrace_put_text(etrace_put_decimal(to, event.cpu), b',"t":')
    to = etrace_put_text(put_signed(to, event.time - builder.trace.start), b"}")
    builder.cpus.len = to - builder.cpus.data
    return 0


cdef int add_fork(Builder *builder, const Event *event, const Event *before) noexcept nogil:
    cdef size_t begin = (<Start *>(builder.starts.data + builder.starts.len) - 1).forks
    cdef u64 flags = 0
    cdef char *to
    if buffer_reserve(&builder.forks, FIXED_BYTES) < 0:
        return -1
    if event.access & IS_CLONE:
        flags = <u64>before.payload.number
    to = builder.forks.data + builder.forks.len
    to = etrace_put_text(to, b'{"p":' if builder.forks.len == begin else b',{"p":')
    to = etrace_put_text(put_signed(to, event.payload.number), b',"f":')
    to = etrace_put_text(etrace_put_decimal(to, flags), b"}")
    builder.forks.len = to - builder.forks.data
    return 0


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
    if start_execution(builder, event.time, NULL) < 0:
        return -1
    while event != NULL:
        if event.kind == ETRACE_EV_NEW_PROC:
            index += 1
            is_first = True
            if start_execution(builder, event.time, event.payload.program) < 0:
                return -1
        elif event.kind == ETRACE_EV_SCHED_FORK:
            if add_fork(builder, event, before) < 0:
                return -1
        elif not is_grouped and apply_event(builder.trace, &builder.table, number, index, event,
                                            before) < 0:
            return -1
        if is_first or event.cpu != cpu:
            cpu = event.cpu
            if add_cpu(builder, event, is_first) < 0:
                return -1
            is_first = False
        before = event
        event = event.next
    if start_execution(builder, process.last.time, NULL) < 0:  # where the lists end
        return -1
    return 0 if is_grouped else end_files(builder)


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
    builder.keys.len = 0
    builder.spare.len = 0
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


cdef inline char *put_path(char *to, const Path *path) noexcept nogil:
    return etrace_copy(to, path.json, path.json_len)


cdef inline s64 last_use(const Record *record) noexcept nogil:
    return max(record.begin, record.end)


# One element of "t".
cdef int put_change(Builder *builder, u8 change, s64 time, u32 name,
                    bint is_first) noexcept nogil:
    cdef const Path *path = &builder.trace.paths[name]
    cdef char *to
    if buffer_reserve(&builder.out, <size_t>path.json_len + FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(builder.out.data + builder.out.len, b',"t":[' if is_first else b",")
    to = etrace_put_text(to, b'{"k":"')
    to[0] = CHANGE_LETTERS[change - 1]
    to = etrace_put_decimal(etrace_put_text(to + 1, b'","t":'), <u64>time)
    if change not in (EMPTIED, GONE, BEGUN):
        to = put_path(etrace_put_text(to, b',"n":'), path)
    builder.out.len = etrace_put_text(to, b"}") - builder.out.data
    return 0


# "t" of the records from keys[0] to keys[n].
cdef int put_changes(Builder *builder, const Record *records, const Key *keys, s64 n,
                     const Merged *merged) noexcept nogil:
    cdef bint is_first = True
    cdef const Record *record
    cdef s64 i
    if merged.begin < merged.first.begin:
        if put_change(builder, BEGUN, merged.begin, 0, True) < 0:
            return -1
        is_first = False
    for i in range(n if merged.has_changes else 0):
        record = &records[keys[i].record]
        if record.is_copy or record.change == NO_CHANGE:
            continue
        if put_change(builder, record.change, record.begin, record.name, is_first) < 0:
            return -1
        is_first = False
    return 0 if is_first else put_bytes(&builder.out, b"]", 1)


cdef int put_file(Builder *builder, const Record *records, const Key *keys, s64 n,
                  const Merged *merged, bint is_first) noexcept nogil:
    cdef const Record *record = merged.first
    cdef const Path *original = &builder.trace.paths[record.files >> 32]
    cdef const Path *resolved = &builder.trace.paths[<u32>record.files]
    cdef char *to
    if buffer_reserve(&builder.out, <size_t>original.json_len + resolved.json_len
                      + FIXED_BYTES) < 0:
        return -1
    to = builder.out.data + builder.out.len
    to = etrace_put_text(to, b'{"p":' if is_first else b',{"p":')
    to = put_path(to, resolved)
    if original != resolved:
        to = put_path(etrace_put_text(to, b',"o":'), original)
    to = etrace_put_decimal(etrace_put_text(to, b',"b":'), <u64>record.begin)
    to = etrace_put_decimal(etrace_put_text(to, b',"e":'), <u64>record.end)
    if merged.last > last_use(record):
        to = etrace_put_decimal(etrace_put_text(to, b',"l":'), <u64>merged.last)
    builder.out.len = to - builder.out.data
    if put_changes(builder, records, keys, n, merged) < 0 \
            or buffer_reserve(&builder.out, FIXED_BYTES) < 0:
        return -1
    to = builder.out.data + builder.out.len
    to = etrace_put_decimal(etrace_put_text(to, b',"m":'), original.mode | merged.access)
    to = put_signed(etrace_put_text(to, b',"s":'), original.size)
    to = etrace_put_text(to, b"}")
    builder.out.len = to - builder.out.data
    builder.n_files += 1
    return 0


cdef int put_bytes(Buffer *out, const char *bytes, size_t len) noexcept nogil:
    return buffer_add(out, bytes, len)


cdef int put_name(Builder *builder, const char *key, const Program *program,
                  u32 i) noexcept nogil:
    cdef const Path *path = &builder.trace.paths[
        builder.trace.chunks[program.chunk].ranks[0][program.names[i]]]
    if buffer_add(&builder.out, key, 5) < 0:
        return -1
    return put_bytes(&builder.out, path.json, path.json_len)


# "b", "w" and "v".
cdef int put_program(Builder *builder, const Process *process,
                     const Program *program) noexcept nogil:
    cdef const Program *shown = program if program != NULL else process.inherited
    if program == NULL:
        if put_bytes(&builder.out, b',"b":"","w":""', 14) < 0:
            return -1
    elif put_name(builder, b',"b":', program, 0) < 0 or put_name(builder, b',"w":', program, 2) < 0:
        return -1
    if put_bytes(&builder.out, b',"v":', 5) < 0:
        return -1
    if shown == NULL:
        return put_bytes(&builder.out, b"[]", 2)
    return put_bytes(&builder.out, shown.arguments, shown.arguments_len)


cdef int put_times(Builder *builder, const Process *process, u32 index,
                   const Start *start) noexcept nogil:
    cdef s64 end = start[1].time
    cdef char *to
    if index == process.n_programs and not process.has_exit:
        end = builder.trace.end
    if buffer_reserve(&builder.out, FIXED_BYTES) < 0:
        return -1
    to = builder.out.data + builder.out.len
    to = put_signed(etrace_put_text(to, b'{"p":'), process.upid)
    to = etrace_put_decimal(etrace_put_text(to, b',"x":'), index)
    to = put_signed(etrace_put_text(to, b',"s":'), start.time - builder.trace.start)
    to = put_signed(etrace_put_text(to, b',"e":'), end - start.time)
    builder.out.len = to - builder.out.data
    return 0


cdef int put_parent(Builder *builder, const Process *process) noexcept nogil:
    cdef char *to
    if buffer_reserve(&builder.out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(builder.out.data + builder.out.len, b'],"r":{"p":')
    if process.parent == NO_PROCESS:
        to = etrace_put_text(to, b'-1,"x":0}')
    else:
        to = put_signed(to, builder.trace.processes[process.parent].upid)
        to = etrace_put_decimal(etrace_put_text(to, b',"x":'), process.parent_index)
        to = etrace_put_text(to, b"}")
    builder.out.len = to - builder.out.data
    return 0


# First edge of an execution, by bisection.
cdef u64 first_edge(const Trace *trace, u32 execution) noexcept nogil:
    cdef u64 low = 0
    cdef u64 high = trace.n_edges
    cdef u64 middle
    while low < high:
        middle = (low + high) / 2
        if trace.edges[middle].writer < execution:
            low = middle + 1
        else:
            high = middle
    return low


cdef int put_readers(Builder *builder, u32 execution) noexcept nogil:
    cdef const Trace *trace = builder.trace
    cdef u64 i = first_edge(trace, execution)
    cdef const Process *reader
    cdef bint is_first = True
    cdef char *to
    while i < trace.n_edges and trace.edges[i].writer == execution:
        if buffer_reserve(&builder.out, FIXED_BYTES) < 0:
            return -1
        reader = &trace.processes[trace.execution_process[trace.edges[i].reader]]
        to = builder.out.data + builder.out.len
        to = put_signed(etrace_put_text(to, b'{"p":' if is_first else b',{"p":'), reader.upid)
        to = etrace_put_decimal(etrace_put_text(to, b',"x":'),
                                trace.edges[i].reader - reader.first_execution)
        to = etrace_put_text(to, b"}")
        builder.out.len = to - builder.out.data
        is_first = False
        i += 1
    return 0


cdef int put_held(Builder *builder, u8 fd, const Event *opened, bint is_first) noexcept nogil:
    cdef const Path *path = &builder.trace.paths[
        builder.trace.chunks[opened.chunk].ranks[0][opened.payload.name.first]]
    cdef char *to
    if buffer_reserve(&builder.out, <size_t>path.json_len + FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(builder.out.data + builder.out.len,
                         b'{"d":' if is_first else b',{"d":')
    to = put_path(etrace_put_text(etrace_put_decimal(to, fd), b',"p":'), path)
    to = etrace_put_decimal(etrace_put_text(to, b',"m":'), opened.access & ACCESS)
    builder.out.len = etrace_put_text(to, b"}") - builder.out.data
    return 0


# Files that the execution began with.
cdef int put_inherited(Builder *builder, u32 number, u32 index) noexcept nogil:
    cdef const Process *process = &builder.trace.processes[number]
    cdef const Event *opened
    cdef const Wanted *wanted = process.wanted + builder.next_wanted
    cdef bint is_first = True
    while builder.next_wanted < process.n_wanted and wanted.index == index:
        opened = find_inherited(builder.trace, number, wanted)
        if opened != NULL:
            if put_held(builder, wanted.fd, opened, is_first) < 0:
                return -1
            is_first = False
        wanted += 1
        builder.next_wanted += 1
    return 0


cdef int put_status(Builder *builder, const Process *process, u32 index) noexcept nogil:
    cdef char *to
    if buffer_reserve(&builder.out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(builder.out.data + builder.out.len, b"]")
    if index == process.n_programs and process.has_exit:
        to = etrace_put_decimal(etrace_put_text(to, b',"!":'), process.exit_status)
    to = etrace_put_text(to, b',"o":[')
    builder.out.len = to - builder.out.data
    return 0


# Everything before the files.
cdef int put_head(Builder *builder, u32 number, u32 index) noexcept nogil:
    cdef const Process *process = &builder.trace.processes[number]
    cdef const Start *start = &(<const Start *>builder.starts.data)[index]
    cdef Buffer *out = &builder.out
    if put_times(builder, process, index, start) < 0 \
            or put_program(builder, process, start.program) < 0 \
            or put_bytes(out, b',"c":[', 6) < 0 \
            or put_bytes(out, builder.forks.data + start.forks,
                         start[1].forks - start.forks) < 0 \
            or put_parent(builder, process) < 0 \
            or put_bytes(out, b',"i":[', 6) < 0 \
            or put_readers(builder, process.first_execution + index) < 0 \
            or put_bytes(out, b'],"h":[', 7) < 0 \
            or put_inherited(builder, number, index) < 0 \
            or put_bytes(out, b'],"u":[', 7) < 0 \
            or put_bytes(out, builder.cpus.data + start.cpus, start[1].cpus - start.cpus) < 0:
        return -1
    return put_status(builder, process, index)


cdef u64 path_bytes(const Builder *builder, u64 files) noexcept nogil:
    cdef u32 original = <u32>(files >> 32)
    cdef u32 resolved = <u32>files
    cdef u64 n = builder.trace.paths[resolved].len
    return n if original == resolved else n + builder.trace.paths[original].len


# Ends the entry and begins it again, for more files than one may hold.
cdef int split_entry(Builder *builder, size_t begin, size_t head_len) noexcept nogil:
    if put_bytes(&builder.out, b"]},\n", 4) < 0 or buffer_reserve(&builder.out, head_len) < 0:
        return -1
    memcpy(builder.out.data + builder.out.len, builder.out.data + begin, head_len)
    builder.out.len += head_len
    builder.n_entries += 1
    return 0


# All records of one pair of paths, from keys[0] on; returns how many, fills what they make.
cdef s64 merge_records(const Record *records, const Key *keys, Merged *merged) noexcept nogil:
    cdef const Record *record
    cdef s64 n = 0
    merged.first = NULL
    merged.last = 0
    merged.has_changes = False
    while keys[n].index == keys[0].index and keys[n].files == keys[0].files:
        record = &records[keys[n].record]
        merged.last = max(merged.last, last_use(record))
        if merged.first == NULL and not record.is_copy:
            merged.first = record
            merged.begin = record.begin
            merged.access = record.access
        elif not record.is_copy and record.access != merged.access:
            merged.access = READ_WRITE
        if not record.is_copy:
            merged.begin = min(merged.begin, record.begin)
            merged.has_changes |= record.change != NO_CHANGE
        n += 1
    return n


# The files of one execution, from keys[0] on; returns how many keys they take, -1 without memory.
cdef s64 put_files(Builder *builder, const Record *records, const Key *keys, u32 index,
                   size_t begin) noexcept nogil:
    cdef size_t head_len = builder.out.len - begin
    cdef u64 n_bytes = 0
    cdef Merged merged
    cdef s64 n = 0
    cdef s64 n_merged
    while keys[n].index == index:
        n_merged = merge_records(records, keys + n, &merged)
        n += n_merged
        if merged.first == NULL:
            continue
        if builder.split_bytes and n_bytes and \
                n_bytes + path_bytes(builder, merged.first.files) > builder.split_bytes:
            if split_entry(builder, begin, head_len) < 0:
                return -1
            n_bytes = 0
        if put_file(builder, records, keys + n - n_merged, n_merged, &merged,
                    builder.out.data[builder.out.len - 1] == c'[') < 0:
            return -1
        if builder.split_bytes:
            n_bytes += path_bytes(builder, merged.first.files)
    return n


cdef int build_process(Builder *builder, u32 number) noexcept nogil:
    cdef const Process *process = &builder.trace.processes[number]
    cdef const Buffer *records = &builder.records
    cdef const Key *keys
    cdef size_t begin
    cdef u32 index
    cdef s64 n
    builder.records.len = builder.starts.len = builder.forks.len = builder.cpus.len = 0
    builder.next_wanted = 0
    if walk(builder, number) < 0:
        return -1
    if builder.grouped != NULL and builder.grouped[number].len:
        records = &builder.grouped[number]
    keys = sort_records(builder, records)
    if keys == NULL:
        return -1
    for index in range(process.n_programs + 1):
        if put_bytes(&builder.out, b"[\n" if number == builder.first_process and not index
                     else b",\n", 2) < 0:
            return -1
        begin = builder.out.len
        if put_head(builder, number, index) < 0:
            return -1
        n = put_files(builder, <const Record *>records.data, keys, index, begin)
        if n < 0 or put_bytes(&builder.out, b"]}", 2) < 0:
            return -1
        keys += n
        builder.n_entries += 1
    return 0
