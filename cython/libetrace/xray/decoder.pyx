# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The bytes of a log into columns of records.

Time of a Flight Data Recorder log: NewCPUId and TSCWrap set the counter, a function record adds its
delta, and from version 5 on so does an event. A later buffer of a thread without a NewCPUId goes on where
the one before ended (LLVM 5). What a bad record costs, `records` says. Nothing is allocated by a number
that the file gives.
"""
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from libetrace.core.memory cimport buffer_add, buffer_free
from libetrace.xray.expander cimport NO_ROW, Rows, rows_find, rows_free, rows_get
from libetrace.xray.records cimport (
    BAD_ACTION, BAD_EVENT_SIZE, BAD_KIND, BUFFER_EXTENTS, CALL_ARGUMENT, CUSTOM_EVENT, CUT_OFF,
    END_OF_BUFFER, ENTER, ENTER_ARGS, FUNCTION, FUNCTION_BYTES, GARBAGE, HEADER_BYTES, KIND_CUSTOM,
    KIND_TYPED, METADATA_BYTES, NEGATIVE_SIZE, NEW_CPU_ID, NO_END_OF_BUFFER, RECORD_CUT_OFF,
    STRAY_ARGUMENT, STRAY_PREAMBLE, TRAILING_BYTES, TSC_WRAP, TYPED_EVENT, UNKNOWN_ACTION,
    UNKNOWN_KIND, UNKNOWN_RECORD_TYPE, Record, bad_bytes, load16, load32, load64, problem_add,
    record_read,
)

cdef enum:
    N_BASIC_VERSIONS = 3
    N_FDR_VERSIONS = 5


class LogError(ValueError):
    """This is no XRay log that can be read; the text says what is there instead."""


# ---- header ----

cdef bint _is_known(u16 version, u16 type) noexcept nogil:
    if type == 1:
        return 1 <= version <= N_FDR_VERSIONS
    return type == 0 and 1 <= version <= N_BASIC_VERSIONS


cdef bint header_fill(const u8 *at, u64 size, Header *header) noexcept nogil:
    memset(header, 0, sizeof(header[0]))
    if size < HEADER_BYTES:
        return False
    header.is_big = not _is_known(load16(at, False), load16(at + 2, False)) and _is_known(
        load16(at, True), load16(at + 2, True)
    )
    header.version = load16(at, header.is_big)
    header.type = load16(at + 2, header.is_big)
    header.bits = load32(at + 4, header.is_big)
    header.frequency = load64(at + 8, header.is_big)
    header.buffer_bytes = load64(at + 16, header.is_big) if header.type == 1 else 0
    return _is_known(header.version, header.type)


cdef int read_header(const u8[::1] data, Header *header) except -1:
    """Fill `header`; LogError when the bytes are not a log of a known version."""
    cdef u64 size = data.shape[0]
    if size < HEADER_BYTES:
        raise LogError(f"the file ends inside the 32-byte header ({size} bytes)")
    if header_fill(&data[0], size, header):
        return 0
    seen = bytes(data[:4]).hex(" ")
    if bytes(data[:8]) == b"forpyarx":
        raise LogError("this is a log of XRay's profiling mode, which is another format")
    raise LogError(
        f"offset 0: version {header.version}, type {header.type} (bytes {seen}); known are versions 1 to 5"
        " of type 1 (flight data recorder) and 1 to 3 of type 0 (basic)"
    )


# ---- columns ----

cdef int sink_allocate(Sink *sink, u64 size) noexcept nogil:
    """Make room for pieces of `size` records; -1 without memory."""
    sink.size = size
    sink.tsc = <u64 *>malloc(size * sizeof(u64))
    sink.function = <u32 *>malloc(size * sizeof(u32))
    sink.kind = <u8 *>malloc(size)
    if sink.tsc == NULL or sink.function == NULL or sink.kind == NULL:
        return -1
    return 0


cdef void sink_free(Sink *sink) noexcept nogil:
    free(sink.tsc)
    free(sink.function)
    free(sink.kind)
    buffer_free(&sink.arguments)
    buffer_free(&sink.events)
    buffer_free(&sink.cpus)


# ---- records ----

cdef void _skip(const Header *header, const u8 *data, Cursor *cursor, const Record *record,
                Problems *problems) noexcept nogil:
    # Skip bytes that are not a record, and the rest of the buffer when nothing sound follows.
    cdef u64 skipped = bad_bytes(header, data, cursor.at, cursor.end, record)
    cdef int kind
    if record.what == BAD_KIND:
        kind = UNKNOWN_KIND
    elif record.what == BAD_ACTION:
        kind = UNKNOWN_ACTION
        if skipped == record.n_bytes:
            cursor.tsc += record.tsc
    elif record.what == BAD_EVENT_SIZE:
        kind = NEGATIVE_SIZE
    elif record.what == CUT_OFF:
        kind = RECORD_CUT_OFF
    else:
        kind = GARBAGE
    problem_add(problems, kind, cursor.at, skipped,
                record.action if record.what == BAD_ACTION else record.number)
    cursor.before = NO_RECORD
    cursor.at += skipped


cdef int _add_cpu(Cursor *cursor, Sink *sink, u16 cpu) noexcept nogil:
    cdef CpuRun run
    cursor.cpu = cpu
    cursor.has_cpu = True
    if not sink.has_extras:
        return 0
    run.record = sink.first + sink.n
    run.cpu = cpu
    return buffer_add(&sink.cpus, &run, sizeof(run))


cdef int _add_argument(Cursor *cursor, Sink *sink, const Record *record, Problems *problems) noexcept nogil:
    # LLVM 6 and 7 log a call with an argument as a plain Enter
    cdef Argument argument
    if cursor.before == NO_CALL:
        problem_add(problems, STRAY_ARGUMENT, cursor.at, METADATA_BYTES, 0)
    if cursor.before != A_CALL or sink.n == 0:  # its call was in the piece before
        return 0
    if sink.kind[sink.n - 1] == ENTER:
        sink.kind[sink.n - 1] = ENTER_ARGS
    if not sink.has_extras:
        return 0
    argument.record = sink.first + sink.n - 1
    argument.value = record.tsc
    return buffer_add(&sink.arguments, &argument, sizeof(argument))


cdef int _add_event(Cursor *cursor, Sink *sink, const Record *record) noexcept nogil:
    cdef Event event
    cdef u64 tsc = record.tsc
    if record.is_delta:
        cursor.tsc += tsc
        tsc = cursor.tsc
    sink.tsc[sink.n] = tsc
    sink.function[sink.n] = 0
    cursor.before = NO_CALL
    sink.kind[sink.n] = KIND_CUSTOM if record.what == CUSTOM_EVENT else KIND_TYPED
    event.record = sink.first + sink.n
    event.offset = cursor.at + METADATA_BYTES
    event.n_bytes = <u32>record.payload_bytes
    event.type = record.number if record.what == TYPED_EVENT else 0
    sink.n += 1
    return buffer_add(&sink.events, &event, sizeof(event)) if sink.has_extras else 0


cdef int _take_metadata(const Header *header, const u8 *data, Cursor *cursor, Sink *sink,
                        Problems *problems) noexcept nogil:
    # One record that is not a sound function; 1 at the end of a buffer, -1 without memory.
    cdef Record record
    cdef int done = 0
    record_read(header, data + cursor.at, data + cursor.end, &record)
    if record.what > FUNCTION or record.what == BUFFER_EXTENTS:
        _skip(header, data, cursor, &record, problems)
        return 0
    if record.what == NEW_CPU_ID:
        cursor.tsc = record.tsc
        done = _add_cpu(cursor, sink, record.number)
    elif record.what == TSC_WRAP:
        cursor.tsc = record.tsc
    elif record.what == CALL_ARGUMENT:
        done = _add_argument(cursor, sink, &record, problems)
    elif record.what == CUSTOM_EVENT or record.what == TYPED_EVENT:
        done = _add_event(cursor, sink, &record)
    elif record.what != END_OF_BUFFER:  # NewBuffer, WallTime, Pid
        if cursor.at >= cursor.body:
            problem_add(problems, STRAY_PREAMBLE, cursor.at, METADATA_BYTES, record.what)
    else:
        cursor.at = cursor.end  # what follows is padding of any content
        return 1
    cursor.at += record.n_bytes
    return done


cdef u64 _take_functions(const Header *header, const u8 *data, Cursor *cursor, Sink *sink) noexcept nogil:
    # Function records as far as they follow each other and there is room: the loop that counts.
    cdef const u8 *at = data + cursor.at
    cdef const u8 *last = data + cursor.end - FUNCTION_BYTES
    cdef u64 n = sink.n
    cdef u64 size = sink.size
    cdef u64 tsc = cursor.tsc
    cdef u32 word
    cdef u64 *times = sink.tsc
    cdef u32 *functions = sink.function
    cdef u8 *kinds = sink.kind
    while at <= last and n < size:
        word = load32(at, False)
        if word & 9:  # metadata, or an action above 3
            break
        tsc += load32(at + 4, False)
        times[n] = tsc
        functions[n] = word >> 4
        kinds[n] = <u8>(word >> 1 & 3)
        n += 1
        at += FUNCTION_BYTES
    if n > sink.n:
        cursor.before = A_CALL
    cursor.at = at - data
    cursor.tsc = tsc
    sink.n = n
    return n


cdef int _take_big_function(const Header *header, const u8 *data, Cursor *cursor, Sink *sink) noexcept nogil:
    # One function record of a big-endian log; 0 when there is none.
    cdef Record record
    record_read(header, data + cursor.at, data + cursor.end, &record)
    if record.what != FUNCTION:
        return 0
    cursor.tsc += record.tsc
    sink.tsc[sink.n] = cursor.tsc
    sink.function[sink.n] = record.function
    sink.kind[sink.n] = record.action
    sink.n += 1
    cursor.before = A_CALL
    cursor.at += record.n_bytes
    return 1


cdef int decode(const Header *header, const u8 *data, Cursor *cursor, Sink *sink,
                Problems *problems) noexcept nogil:
    cdef int result
    while cursor.at < cursor.end:
        if sink.n >= sink.size:
            return 1
        if header.is_big:
            if _take_big_function(header, data, cursor, sink):
                continue
        elif cursor.end - cursor.at >= FUNCTION_BYTES:
            _take_functions(header, data, cursor, sink)
            if cursor.at >= cursor.end:
                break
            if sink.n >= sink.size:
                return 1
        result = _take_metadata(header, data, cursor, sink, problems)
        if result < 0:
            return -1
        if result > 0:
            cursor.before = NO_CALL
            return 0
    cursor.before = NO_CALL
    if header.version == 1:
        problem_add(problems, NO_END_OF_BUFFER, cursor.end, 0, 0)
    return 0


# ---- basic mode ----
# Records of XRay's basic mode: 32 bytes each, threads mixed.
#
# A thread writes its records in order but in chunks, so the file is sorted by thread and by nothing else.
# Version 2 brought logged arguments (a record after the call's own), version 3 process ids.


cdef enum:
    RECORD_BYTES = 32
    NORMAL = 0
    ARGUMENT = 1


# Where the next record of each thread goes.
cdef struct Writer:
    u64 next
    u64 n_written
    u16 cpu


cdef void _identify(const Header *header, const u8 *at, s32 *process, s32 *thread) noexcept nogil:
    cdef int place = 8 if load16(at, header.is_big) == ARGUMENT else 16
    thread[0] = <s32>load32(at + place, header.is_big)
    process[0] = <s32>load32(at + place + 4, header.is_big) if header.version >= 3 else 0


cdef inline u64 _thread_key(s32 process, s32 thread) noexcept nogil:
    return <u64><u32>process << 32 | <u32>thread


cdef u32 _get_thread(Rows *index, Buffer *threads, s32 process, s32 thread) noexcept nogil:
    # The thread's number, new if need be; NO_ROW without memory.
    cdef u32 number = rows_get(index, _thread_key(process, thread))
    cdef Thread new
    if number == NO_ROW or number < threads.len // sizeof(Thread):
        return number
    new.process = process
    new.thread = thread
    new.first_record = new.n_records = 0
    return number if buffer_add(threads, &new, sizeof(new)) == 0 else NO_ROW


cdef bint _is_call(const Header *header, const u8 *at) noexcept nogil:
    return load16(at, header.is_big) == NORMAL and at[3] <= ENTER_ARGS


cdef int _count_records(const Header *header, const u8 *data, u64 size, Rows *index, Buffer *threads) noexcept nogil:
    cdef u64 at = HEADER_BYTES
    cdef s32 process, thread
    cdef u32 number
    while size - at >= RECORD_BYTES:
        if _is_call(header, data + at):
            _identify(header, data + at, &process, &thread)
            number = _get_thread(index, threads, process, thread)
            if number == NO_ROW:
                return -1
            (<Thread *>threads.data)[number].n_records += 1
        at += RECORD_BYTES
    return 0


cdef int _note_cpu(Sink *sink, Writer *writer, u64 record, u16 cpu) noexcept nogil:
    cdef CpuRun run
    if writer.n_written and writer.cpu == cpu:
        return 0
    writer.cpu = cpu
    run.record = record
    run.cpu = cpu
    return buffer_add(&sink.cpus, &run, sizeof(run))


cdef int _put_basic(const Header *header, const u8 *at, Sink *sink, Writer *writer) noexcept nogil:
    cdef u64 record = writer.next
    sink.tsc[record] = load64(at + 8, header.is_big)
    sink.function[record] = load32(at + 4, header.is_big)
    sink.kind[record] = at[3]
    if _note_cpu(sink, writer, record, at[2]) < 0:
        return -1
    writer.next += 1
    writer.n_written += 1
    return 0


cdef int _put_argument(const Header *header, const u8 *data, u64 at, Sink *sink, Writer *writer,
                       Problems *problems) noexcept nogil:
    cdef Argument argument
    cdef u64 last = writer.next - 1
    if writer.n_written == 0 or sink.function[last] != load32(data + at + 4, header.is_big):
        problem_add(problems, STRAY_ARGUMENT, at, RECORD_BYTES, 0)
        return 0
    if sink.kind[last] == ENTER:
        sink.kind[last] = ENTER_ARGS
    argument.record = last
    argument.value = load64(data + at + 16, header.is_big)
    return buffer_add(&sink.arguments, &argument, sizeof(argument))


cdef int _take_basic(const Header *header, const u8 *data, u64 at, Sink *sink, const Rows *index, const Buffer *threads,
               Writer *writers, Problems *problems) noexcept nogil:
    cdef u16 type = load16(data + at, header.is_big)
    cdef s32 process, thread
    cdef u32 number
    if type > ARGUMENT:
        problem_add(problems, UNKNOWN_RECORD_TYPE, at, RECORD_BYTES, type)
        return 0
    if type == NORMAL and data[at + 3] > ENTER_ARGS:
        problem_add(problems, UNKNOWN_ACTION, at, RECORD_BYTES, data[at + 3])
        return 0
    _identify(header, data + at, &process, &thread)
    number = rows_find(index, _thread_key(process, thread))
    if number == NO_ROW:  # one that has only arguments
        problem_add(problems, STRAY_ARGUMENT, at, RECORD_BYTES, 0)
        return 0
    if type == ARGUMENT:
        return _put_argument(header, data, at, sink, &writers[number], problems)
    return _put_basic(header, data + at, sink, &writers[number])


cdef int _fill_basic(const Header *header, const u8 *data, u64 size, Sink *sink, const Rows *index, Buffer *threads,
               Problems *problems) noexcept nogil:
    cdef u64 n_threads = threads.len // sizeof(Thread)
    cdef Writer *writers = <Writer *>calloc(n_threads + 1, sizeof(Writer))
    cdef Thread *thread = <Thread *>threads.data
    cdef u64 i, at = HEADER_BYTES
    cdef int failed = 0
    if writers == NULL:
        return -1
    for i in range(n_threads):
        thread[i].first_record = sink.n
        writers[i].next = sink.n
        sink.n += thread[i].n_records
    while size - at >= RECORD_BYTES and failed == 0:
        failed = _take_basic(header, data, at, sink, index, threads, writers, problems)
        at += RECORD_BYTES
    if at < size:
        problem_add(problems, TRAILING_BYTES, at, size - at, 0)
    free(writers)
    return failed


cdef int decode_basic(const Header *header, const u8 *data, u64 size, Sink *sink, Buffer *threads,
                      Problems *problems) noexcept nogil:
    cdef Rows index
    cdef int failed
    memset(&index, 0, sizeof(index))
    failed = _count_records(header, data, size, &index, threads)
    if failed == 0:
        failed = _fill_basic(header, data, size, sink, &index, threads, problems)
    rows_free(&index)
    return failed
