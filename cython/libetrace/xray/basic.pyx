# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Records of XRay's basic mode: 32 bytes each, threads mixed.

A thread writes its records in order but in chunks, so the file is sorted by thread and by nothing else.
Version 2 brought logged arguments (a record behind the call's own), version 3 process ids.
"""
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from libetrace.core.memory cimport buffer_add
from libetrace.xray.problems cimport (
    STRAY_ARGUMENT, TRAILING_BYTES, UNKNOWN_ACTION, UNKNOWN_RECORD_TYPE, problem_add,
)
from libetrace.core.types cimport u16, u32
from libetrace.xray.decoder cimport Argument, CpuRun
from libetrace.xray.records cimport ENTER, ENTER_ARGS, HEADER_BYTES, load16, load32, load64

cdef enum:
    RECORD_BYTES = 32
    NORMAL = 0
    ARGUMENT = 1
    NO_THREAD = 0xffffffff


# Threads by (process, thread): open addressing, at most half full.
cdef struct Index:
    u32 *slots  # thread number + 1
    u64 mask
    u64 n


# Where the next record of each thread goes.
cdef struct Writer:
    u64 next
    u64 n_written
    u16 cpu


cdef void _identify(const Header *header, const u8 *at, s32 *process, s32 *thread) noexcept nogil:
    cdef int place = 8 if load16(at, header.is_big) == ARGUMENT else 16
    thread[0] = <s32>load32(at + place, header.is_big)
    process[0] = <s32>load32(at + place + 4, header.is_big) if header.version >= 3 else 0


cdef inline u64 _hash(s32 process, s32 thread) noexcept nogil:
    cdef u64 key = <u64><u32>process << 32 | <u32>thread
    key *= <u64>0x9e3779b97f4a7c15
    return key ^ key >> 29


cdef int _grow(Index *index, const Thread *threads) noexcept nogil:
    cdef u64 size = (index.mask + 1) * 2 if index.slots != NULL else 64
    cdef u32 *slots = <u32 *>calloc(size, sizeof(u32))
    cdef u64 i, at
    if slots == NULL:
        return -1
    for i in range(index.n):
        at = _hash(threads[i].process, threads[i].thread) & (size - 1)
        while slots[at]:
            at = (at + 1) & (size - 1)
        slots[at] = <u32>(i + 1)
    free(index.slots)
    index.slots = slots
    index.mask = size - 1
    return 0


cdef u64 _slot(const Index *index, const Thread *known, s32 process, s32 thread) noexcept nogil:
    # Where the thread is, or the free slot for it.
    cdef u64 at = _hash(process, thread) & index.mask
    cdef u32 number
    while index.slots[at]:
        number = index.slots[at] - 1
        if known[number].thread == thread and known[number].process == process:
            break
        at = (at + 1) & index.mask
    return at


cdef u32 _find(const Index *index, const Buffer *threads, s32 process, s32 thread) noexcept nogil:
    # The thread's number, NO_THREAD when it has none.
    if index.slots == NULL:
        return NO_THREAD
    return index.slots[_slot(index, <const Thread *>threads.data, process, thread)] - 1


cdef u32 _get(Index *index, Buffer *threads, s32 process, s32 thread) noexcept nogil:
    # The thread's number, new if need be; NO_THREAD without memory.
    cdef Thread new
    cdef u64 at
    if 2 * (index.n + 1) > index.mask and _grow(index, <const Thread *>threads.data) < 0:
        return NO_THREAD
    at = _slot(index, <const Thread *>threads.data, process, thread)
    if index.slots[at]:
        return index.slots[at] - 1
    new.process = process
    new.thread = thread
    new.first_record = new.n_records = 0
    if buffer_add(threads, &new, sizeof(new)) < 0:
        return NO_THREAD
    index.n += 1
    index.slots[at] = <u32>index.n
    return <u32>(index.n - 1)


cdef bint _is_call(const Header *header, const u8 *at) noexcept nogil:
    return load16(at, header.is_big) == NORMAL and at[3] <= ENTER_ARGS


cdef int _count(const Header *header, const u8 *data, u64 size, Index *index, Buffer *threads) noexcept nogil:
    cdef u64 at = HEADER_BYTES
    cdef s32 process, thread
    cdef u32 number
    while size - at >= RECORD_BYTES:
        if _is_call(header, data + at):
            _identify(header, data + at, &process, &thread)
            number = _get(index, threads, process, thread)
            if number == NO_THREAD:
                return -1
            (<Thread *>threads.data)[number].n_records += 1
        at += RECORD_BYTES
    return 0


cdef int _add_cpu(Sink *sink, Writer *writer, u64 record, u16 cpu) noexcept nogil:
    cdef CpuRun run
    if writer.n_written and writer.cpu == cpu:
        return 0
    writer.cpu = cpu
    run.record = record
    run.cpu = cpu
    return buffer_add(&sink.cpus, &run, sizeof(run))


cdef int _put(const Header *header, const u8 *at, Sink *sink, Writer *writer) noexcept nogil:
    cdef u64 record = writer.next
    sink.tsc[record] = load64(at + 8, header.is_big)
    sink.function[record] = load32(at + 4, header.is_big)
    sink.kind[record] = at[3]
    if _add_cpu(sink, writer, record, at[2]) < 0:
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


cdef int _take(const Header *header, const u8 *data, u64 at, Sink *sink, const Index *index, const Buffer *threads,
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
    number = _find(index, threads, process, thread)
    if number == NO_THREAD:  # one that has nothing but arguments
        problem_add(problems, STRAY_ARGUMENT, at, RECORD_BYTES, 0)
        return 0
    if type == ARGUMENT:
        return _put_argument(header, data, at, sink, &writers[number], problems)
    return _put(header, data + at, sink, &writers[number])


cdef int _fill(const Header *header, const u8 *data, u64 size, Sink *sink, const Index *index, Buffer *threads,
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
        failed = _take(header, data, at, sink, index, threads, writers, problems)
        at += RECORD_BYTES
    if at < size:
        problem_add(problems, TRAILING_BYTES, at, size - at, 0)
    free(writers)
    return failed


cdef int decode_basic(const Header *header, const u8 *data, u64 size, Sink *sink, Buffer *threads,
                      Problems *problems) noexcept nogil:
    cdef Index index
    cdef int failed
    memset(&index, 0, sizeof(index))
    failed = _count(header, data, size, &index, threads)
    if failed == 0:
        failed = _fill(header, data, size, sink, &index, threads, problems)
    free(index.slots)
    return failed
