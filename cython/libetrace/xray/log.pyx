# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A whole log in columns, by thread and then by time.

`read(data)` turns any buffer (bytes, a mapped file) into a RawLog. It takes 13 bytes a record.
"""
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memset

from libetrace.core.memory cimport Buffer, buffer_add, buffer_free
from libetrace.core.types cimport u8, u32, u64
from libetrace.xray.decoder cimport (
    Argument, CpuRun, Cursor, Event, Sink, Thread, decode, decode_basic, read_header,
)
from libetrace.xray.framing cimport Block, Frames, sort_blocks
from libetrace.xray.records cimport FUNCTION_BYTES, HEADER_BYTES, Header, Problems, problems_list

cdef enum:
    BASIC_BYTES = 32


cdef class RawLog:
    """One log. All columns have one element for each record, in the order of `threads`.

    `tsc` (u64, ticks), `function` (u32), `kind` (u8: 0 enter, 1 exit, 2 tail exit, 3 enter with
    arguments, 4 custom event, 5 typed event).
    """

    cdef Header header
    cdef readonly object data
    cdef bytearray _tsc, _function, _kind
    cdef readonly u64 n_records
    cdef readonly list threads  # (process, thread, first record, n records)
    # (offset, bytes, process, thread, wall seconds | None, wall microseconds, tsc | None, first record, n records)
    cdef readonly list blocks
    cdef readonly list problems  # (name, offset, skipped bytes, number)
    cdef readonly u64 n_problems
    cdef readonly u64 n_skipped_bytes
    cdef bytes _arguments, _events, _cpus

    @property
    def version(self):
        return self.header.version

    @property
    def is_basic(self):
        return self.header.type == 0

    @property
    def is_big_endian(self):
        return bool(self.header.is_big)

    @property
    def flags(self):
        return self.header.bits

    @property
    def frequency_hz(self):
        return self.header.frequency

    @property
    def buffer_bytes(self):
        return self.header.buffer_bytes

    @property
    def tsc(self):
        return memoryview(self._tsc).cast("Q")

    @property
    def function(self):
        return memoryview(self._function).cast("I")

    @property
    def kind(self):
        return memoryview(self._kind)

    @property
    def arguments(self):
        """(n, 2) u64: record, value; in order of records."""
        cdef const Argument *at = <const Argument *><const char *>self._arguments
        return [(at[i].record, at[i].value) for i in range(len(self._arguments) // sizeof(Argument))]

    @property
    def events(self):
        """List of (record, offset of the payload, bytes, type), in order of records."""
        cdef const Event *at = <const Event *><const char *>self._events
        return [
            (at[i].record, at[i].offset, at[i].n_bytes, at[i].type)
            for i in range(len(self._events) // sizeof(Event))
        ]

    @property
    def cpus(self):
        """List of (first record, cpu): each holds up to the next one."""
        cdef const CpuRun *at = <const CpuRun *><const char *>self._cpus
        return sorted([(at[i].record, at[i].cpu) for i in range(len(self._cpus) // sizeof(CpuRun))],
                      key=lambda run: run[0])

    cdef int _allocate(self, u64 size, Sink *sink) except -1:
        memset(sink, 0, sizeof(sink[0]))
        self._tsc = PyByteArray_FromStringAndSize(NULL, size * sizeof(u64))
        self._function = PyByteArray_FromStringAndSize(NULL, size * sizeof(u32))
        self._kind = PyByteArray_FromStringAndSize(NULL, size)
        sink.tsc = <u64 *>PyByteArray_AS_STRING(self._tsc)
        sink.function = <u32 *>PyByteArray_AS_STRING(self._function)
        sink.kind = <u8 *>PyByteArray_AS_STRING(self._kind)
        sink.size = size
        sink.has_extras = True
        return 0

    cdef int _finish(self, Sink *sink) except -1:
        self.n_records = sink.n
        PyByteArray_Resize(self._tsc, sink.n * sizeof(u64))
        PyByteArray_Resize(self._function, sink.n * sizeof(u32))
        PyByteArray_Resize(self._kind, sink.n)
        self._arguments = PyBytes_FromStringAndSize(sink.arguments.data, sink.arguments.len)
        self._events = PyBytes_FromStringAndSize(sink.events.data, sink.events.len)
        self._cpus = PyBytes_FromStringAndSize(sink.cpus.data, sink.cpus.len)
        return 0


cdef u64 _most_records(const Buffer *blocks) noexcept nogil:
    cdef const Block *block = <const Block *>blocks.data
    cdef u64 i, n = 0
    for i in range(blocks.len // sizeof(Block)):
        n += (block[i].end - block[i].begin) // FUNCTION_BYTES
    return n


cdef bint _same_thread(const Block *a, const Block *b) noexcept nogil:
    return a.process == b.process and a.thread == b.thread


cdef int _start_thread(Sink *sink) noexcept nogil:
    # until a NewCPUId says better
    cdef CpuRun run
    run.record = sink.n
    run.cpu = 0
    return buffer_add(&sink.cpus, &run, sizeof(run))


cdef int _decode_blocks(const Header *header, const u8 *data, Buffer *blocks, Sink *sink,
                        Problems *problems) noexcept nogil:
    cdef Block *block = <Block *>blocks.data
    cdef Cursor cursor
    cdef u64 i
    memset(&cursor, 0, sizeof(cursor))
    for i in range(blocks.len // sizeof(Block)):
        if i == 0 or not _same_thread(&block[i - 1], &block[i]):
            memset(&cursor, 0, sizeof(cursor))
            if _start_thread(sink) < 0:
                return -1
        cursor.at = block[i].begin
        cursor.body = block[i].body
        cursor.end = block[i].end
        block[i].first_record = sink.n
        if decode(header, data, &cursor, sink, problems) < 0:
            return -1
        block[i].n_records = sink.n - block[i].first_record
    return 0


cdef tuple _describe(const Buffer *blocks):
    cdef const Block *block = <const Block *>blocks.data
    cdef u64 i
    cdef list described = [], threads = []
    for i in range(blocks.len // sizeof(Block)):
        described.append((
            block[i].begin, block[i].end - block[i].begin, block[i].process, block[i].thread,
            block[i].wall_seconds if block[i].has_wall else None, block[i].wall_microseconds,
            block[i].tsc if block[i].has_tsc else None, block[i].first_record, block[i].n_records,
        ))
        if i and _same_thread(&block[i - 1], &block[i]):
            process, thread, first, n = threads[len(threads) - 1]
            threads[len(threads) - 1] = (process, thread, first, n + block[i].n_records)
        else:
            threads.append((block[i].process, block[i].thread, block[i].first_record, block[i].n_records))
    return described, threads


cdef int _read_fdr(RawLog log, const u8[::1] data, Frames frames) except -1:
    cdef Sink sink
    cdef int failed
    cdef const u8 *bytes_ = &data[0]
    frames.find(data, True)
    sort_blocks(&frames.blocks)
    log._allocate(_most_records(&frames.blocks), &sink)
    try:
        with nogil:
            failed = _decode_blocks(&log.header, bytes_, &frames.blocks, &sink, &frames.problems)
        if failed < 0:
            raise MemoryError
        log._finish(&sink)
        log.blocks, log.threads = _describe(&frames.blocks)
    finally:
        _free_extras(&sink)
    return 0


cdef void _free_extras(Sink *sink) noexcept nogil:
    buffer_free(&sink.arguments)
    buffer_free(&sink.events)
    buffer_free(&sink.cpus)


cdef int _read_basic(RawLog log, const u8[::1] data, Problems *problems) except -1:
    cdef Buffer threads
    cdef Sink sink
    cdef int failed
    cdef const u8 *bytes_ = &data[0]
    cdef u64 size = data.shape[0]
    cdef const Thread *at
    memset(&threads, 0, sizeof(threads))
    memset(&sink, 0, sizeof(sink))
    try:
        log._allocate((size - HEADER_BYTES) // BASIC_BYTES, &sink)
        with nogil:
            failed = decode_basic(&log.header, bytes_, size, &sink, &threads, problems)
        if failed < 0:
            raise MemoryError
        log._finish(&sink)
        at = <const Thread *>threads.data
        log.threads = [
            (at[i].process, at[i].thread, at[i].first_record, at[i].n_records)
            for i in range(threads.len // sizeof(Thread))
        ]
        log.blocks = []
    finally:
        buffer_free(&threads)
        _free_extras(&sink)
    return 0


def read(const u8[::1] data not None):
    """Decode a log. LogError when the bytes are not a log; damage inside is in `problems`."""
    cdef RawLog log = RawLog()
    cdef Frames frames = Frames()
    read_header(data, &frames.header)
    log.header = frames.header
    log.data = data
    if log.header.type == 0:
        _read_basic(log, data, &frames.problems)
    else:
        _read_fdr(log, data, frames)
    log.problems = problems_list(&frames.problems)
    log.n_problems = frames.problems.n_problems
    log.n_skipped_bytes = frames.problems.n_skipped_bytes
    return log
