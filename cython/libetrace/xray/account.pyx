# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Drives the expander over a log, a piece of records at a time, and accounts for the calls.

Decoded records never leave the processor's cache: memory is 4 bytes a call while percentiles are
wanted, and 16 for those of one row while its own are taken.
"""
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from libetrace.core.memory cimport Buffer, buffer_free
from libetrace.core.types cimport s32, s64, u8, u32, u64
from libetrace.xray.decoder cimport (
    Cursor, Sink, Thread, decode, decode_basic, header_fill, read_header, sink_allocate, sink_free,
)
from libetrace.xray.expander cimport (
    NO_ROW, Expander, Node, Rows, Total, call_columns, expand, expand_begin, expand_end,
    expander_free, expander_init, rows_find, rows_free, rows_get, rows_grow,
)
from libetrace.xray.durations cimport N_PERCENTILES, durations_gather, take_percentiles
from libetrace.xray.framing cimport Block, Frames, frame, sort_blocks
from libetrace.xray.records cimport (
    FUNCTION_BYTES, HEADER_BYTES, Header, Problems, problems_free, problems_list,
)

cdef extern from "Python.h":
    int PyErr_CheckSignals() noexcept
    void *PyErr_Occurred() noexcept

cdef enum:
    PIECE = 16384  # records at a time
    BASIC_BYTES = 32
    SIGNAL_BYTES = 16 << 20  # how often signals are looked for: some 20 ms

BY = {"function": 0, "thread": 1, "edge": 2}
ENDINGS = ("exit", "tail-exit", "caller", "end-of-log")


# ---- accounts ----

cdef u64 _most_calls(const Expander *expander) noexcept nogil:
    cdef const Total *totals = <const Total *>expander.totals.data
    cdef u64 i, most = 0
    for i in range(expander.keys.n):
        most = max(most, totals[i].count)
    return most


cdef int _account(Expander *expander, u64 *percentiles) noexcept nogil:
    cdef const Total *totals = <const Total *>expander.totals.data
    cdef u64 *values = <u64 *>malloc(_most_calls(expander) * sizeof(u64) + 1)
    cdef u64 i, n, state = 0x2545f4914f6cdd1d
    cdef int result = -1 if values == NULL else 0
    for i in range(expander.keys.n):
        if result == 0:
            n = durations_gather(totals[i].durations, values)
            result = take_percentiles(values, n, percentiles + N_PERCENTILES * i, &state)
    free(values)
    return result


# ---- the pass over the file ----

cdef bint _is_wanted(const Rows *wanted, s32 thread) noexcept nogil:
    return wanted == NULL or rows_find(wanted, <u32>thread) != NO_ROW


cdef int _move(Expander *expander, u64 n_bytes) noexcept nogil:
    """Count bytes for who watches; -1 with a Python error when there was a signal (Ctrl-C)."""
    cdef u64 before
    cdef int failed = 0
    if expander.position == NULL:
        return 0
    before = expander.position[0]
    expander.position[0] = before + n_bytes
    if before // SIGNAL_BYTES != (before + n_bytes) // SIGNAL_BYTES:
        with gil:
            failed = PyErr_CheckSignals()
    return failed


cdef int _run_thread(const Header *header, const u8 *data, const Block *block, u64 n, Sink *sink,
                     Expander *expander, Problems *problems) noexcept nogil:
    cdef Cursor cursor
    cdef u64 i, at
    cdef int more
    memset(&cursor, 0, sizeof(cursor))
    if expand_begin(expander, <u32>block.process, <u32>block.thread) < 0:
        return -1
    for i in range(n):
        cursor.at = block[i].begin
        cursor.body = block[i].body
        cursor.end = block[i].end
        more = 1
        while more:
            sink.n = 0
            at = cursor.at
            more = decode(header, data, &cursor, sink, problems)
            if _move(expander, cursor.at - at) < 0 or more < 0:
                return -1
            if expand(expander, sink.tsc, sink.function, sink.kind, sink.n) < 0:
                return -1
    return expand_end(expander)


cdef int _run_fdr(const Header *header, const u8 *data, const Buffer *blocks, const Rows *wanted,
                  Expander *expander, Problems *problems) noexcept nogil:
    cdef const Block *block = <const Block *>blocks.data
    cdef u64 n_blocks = blocks.len // sizeof(Block)
    cdef u64 first = 0, n
    cdef Sink sink
    cdef int failed
    memset(&sink, 0, sizeof(sink))
    failed = sink_allocate(&sink, PIECE)
    while first < n_blocks and failed == 0:
        n = 1
        while (first + n < n_blocks and block[first + n].thread == block[first].thread
               and block[first + n].process == block[first].process):
            n += 1
        if _is_wanted(wanted, block[first].thread):
            failed = _run_thread(header, data, block + first, n, &sink, expander, problems)
        else:
            expander.thread += 1
        first += n
    sink_free(&sink)
    return failed


cdef int _run_basic(const Header *header, const u8 *data, u64 size, Buffer *threads, const Rows *wanted,
                    Expander *expander, Problems *problems) noexcept nogil:
    cdef Sink sink
    cdef const Thread *thread
    cdef u64 i
    cdef int failed
    memset(&sink, 0, sizeof(sink))
    failed = sink_allocate(&sink, (size - HEADER_BYTES) // BASIC_BYTES + 1)
    if failed == 0:
        failed = decode_basic(header, data, size, &sink, threads, problems)
    for i in range(threads.len // sizeof(Thread)):
        thread = &(<const Thread *>threads.data)[i]
        if failed == 0 and _is_wanted(wanted, thread.thread):
            failed = expand_begin(expander, <u32>thread.process, <u32>thread.thread)
        if failed == 0 and _is_wanted(wanted, thread.thread):
            failed = expand(expander, sink.tsc + thread.first_record, sink.function + thread.first_record,
                            sink.kind + thread.first_record, thread.n_records)
        if expand_end(expander) < 0:
            failed = -1
        if failed == 0:
            failed = _move(expander, thread.n_records * BASIC_BYTES)
    sink_free(&sink)
    return failed


cdef int _run(const Header *header, const u8 *data, u64 size, Buffer *blocks, Buffer *threads,
              const Rows *wanted, Expander *expander, Problems *problems) noexcept nogil:
    # One log of any kind; the caller owns its results in `blocks` and `threads`.
    if header.type == 0:
        return _run_basic(header, data, size, threads, wanted, expander, problems)
    if frame(header, data, size, True, blocks, problems) < 0:
        return -1
    sort_blocks(blocks)
    return _run_fdr(header, data, blocks, wanted, expander, problems)


cdef int _account_all(const Header *header, const u8 *data, u64 size, Expander *expander) noexcept nogil:
    cdef Buffer blocks
    cdef Buffer threads
    cdef Problems problems
    cdef u64 *percentiles
    cdef int failed
    memset(&blocks, 0, sizeof(blocks))
    memset(&threads, 0, sizeof(threads))
    memset(&problems, 0, sizeof(problems))
    failed = expander_init(expander, size // FUNCTION_BYTES + 1)
    if failed == 0:
        failed = _run(header, data, size, &blocks, &threads, NULL, expander, &problems)
    percentiles = <u64 *>calloc(expander.keys.n * N_PERCENTILES + 1, sizeof(u64))
    if failed == 0 and percentiles != NULL:
        failed = _account(expander, percentiles)
    free(percentiles)
    buffer_free(&blocks)
    buffer_free(&threads)
    problems_free(&problems)
    return failed


cdef api int etrace_xray_account_memory(const u8 *data, u64 size) noexcept nogil:
    cdef Header header
    cdef Expander *expander
    cdef int failed
    if not header_fill(data, size, &header):
        return 0
    expander = <Expander *>calloc(1, sizeof(Expander))
    if expander == NULL:
        return -1
    expander.options.by = <int>(size % 3)
    expander.options.wants_durations = True
    expander.options.wants_calls = True
    expander.options.wants_nodes = True
    expander.options.splits_nodes = size & 2
    expander.options.counts_deduced = size & 1
    expander.options.shortest = size % 5
    expander.options.until_tsc = ~<u64>0
    failed = _account_all(&header, data, size, expander)
    expander_free(expander)
    free(expander)
    return failed


cdef class Account:
    """Sums over the calls of logs, in ticks. Made by `account`."""

    cdef Expander _expander
    cdef Rows _shown
    cdef Rows _wanted
    cdef Rows *_wanted_or_null
    cdef readonly list rows
    cdef readonly list nodes
    #: (process, thread) of the roots of `nodes`, when threads are not merged
    cdef readonly list roots
    cdef readonly u64 n_calls
    #: (log, process, thread) in the order of their numbers
    cdef readonly list threads
    #: for each log: {version, is_basic, frequency_hz, clocks, first_tsc, problems, n_problems, n_skipped_bytes}
    cdef readonly list logs

    def __cinit__(self):
        self.threads = []
        self.logs = []

    def __dealloc__(self):
        expander_free(&self._expander)
        rows_free(&self._shown)
        rows_free(&self._wanted)

    @property
    def n_unmatched_exits(self):
        return self._expander.n_unmatched_exits

    @property
    def functions(self):
        """Ids of all functions that were called, filters or not, in order of first use."""
        cdef const u64 *ids = <const u64 *>self._expander.functions.keys.data
        return [ids[i] for i in range(self._expander.functions.n)]

    @property
    def kinds(self):
        """Numbers of the kinds of record that were seen."""
        return [kind for kind in range(6) if self._expander.kinds >> kind & 1]

    @property
    def n_deduced(self):
        return self._expander.n_deduced

    @property
    def n_unfinished(self):
        return self._expander.n_unfinished

    @property
    def n_backwards(self):
        """How many calls ended before they began, by the log: they count with 0 ticks."""
        return self._expander.n_backwards

    def columns(self):
        """Return the calls as (name, format, bytes): start, ticks, self_ticks, parent, function, depth, ...

        Calls that a filter left out are not there; `parent` is -1 for those called by none of the rest.
        """
        return call_columns(&self._expander.calls)

    cdef int _add(self, const u8[::1] data) except -1:
        cdef Frames log = Frames()
        cdef Buffer threads
        cdef int failed = 0
        cdef u64 size = data.shape[0]
        memset(&threads, 0, sizeof(threads))
        read_header(data, &log.header)
        try:
            with nogil:
                failed = _run(&log.header, &data[0], size, &log.blocks, &threads, self._wanted_or_null,
                              &self._expander, &log.problems)
            if failed < 0 and PyErr_Occurred() != NULL:
                return -1
            if failed < 0:
                raise MemoryError
            self.threads += _list_threads(len(self.logs), &log.blocks, &threads)
            self.logs.append(_describe(&log.header, &log.blocks, &log.problems))
        finally:
            buffer_free(&threads)
        return 0

    cdef int _summarise(self) except -1:
        cdef u64 n_rows = self._expander.keys.n
        cdef bytearray memory = bytearray(n_rows * N_PERCENTILES * sizeof(u64))
        cdef u64 *percentiles = <u64 *><char *>memory
        cdef const u64 *keys = <const u64 *>self._expander.keys.keys.data
        cdef const Total *totals = <const Total *>self._expander.totals.data
        cdef int failed = 0
        cdef u64 i
        if self._expander.options.wants_durations:
            with nogil:
                failed = _account(&self._expander, percentiles)
        if failed < 0:
            raise MemoryError
        self.rows = [
            _row(keys[i], &totals[i], percentiles + N_PERCENTILES * i)
            for i in range(n_rows) if totals[i].count
        ]
        self.n_calls = sum([row[2] for row in self.rows])
        return 0

    cdef int _list_nodes(self) except -1:
        cdef const u64 *keys = <const u64 *>self._expander.paths.keys.data
        cdef const u64 *roots = <const u64 *>self._expander.roots.keys.data
        cdef const Node *nodes = <const Node *>self._expander.nodes.data
        cdef u64 i, n = self._expander.paths.n
        self.nodes = [
            (_parent(keys[i] >> 32, n), keys[i] & 0xffffffff, nodes[i].n_calls, nodes[i].ticks,
             nodes[i].self_ticks)
            for i in range(n)
        ]
        self.roots = [
            (<s32>(roots[i] >> 32), <s32>(roots[i] & 0xffffffff))
            for i in range(self._expander.roots.n)
        ]
        return 0


cdef s64 _parent(u64 parent, u64 n_nodes) noexcept nogil:
    # A node, -1 at a root of all threads, -2 - n at one of the nth thread.
    return <s64>parent - 1 if parent <= n_nodes else <s64>parent - NO_ROW - 2


cdef list _list_threads(int log, const Buffer *blocks, const Buffer *threads):
    cdef const Block *block = <const Block *>blocks.data
    cdef const Thread *thread = <const Thread *>threads.data
    cdef u64 i
    found = [
        (log, thread[i].process, thread[i].thread) for i in range(threads.len // sizeof(Thread))
    ]
    for i in range(blocks.len // sizeof(Block)):
        if i == 0 or block[i - 1].thread != block[i].thread or block[i - 1].process != block[i].process:
            found.append((log, block[i].process, block[i].thread))
    return found


cdef dict _describe(const Header *header, const Buffer *blocks, const Problems *problems):
    cdef const Block *block = <const Block *>blocks.data
    return {
        "version": header.version,
        "is_basic": header.type == 0,
        "frequency_hz": header.frequency,
        "clocks": [
            (block[i].wall_seconds, block[i].wall_microseconds, block[i].tsc)
            for i in range(blocks.len // sizeof(Block)) if block[i].has_tsc and block[i].has_wall
        ],
        "first_tsc": min([block[i].tsc for i in range(blocks.len // sizeof(Block)) if block[i].has_tsc], default=None),
        "problems": problems_list(problems),
        "n_problems": problems.n_problems,
        "n_skipped_bytes": problems.n_skipped_bytes,
    }


cdef int _fill(Rows *rows, object numbers) except -1:
    for number in numbers:
        if rows_get(rows, <u64>(number & 0xffffffff)) == NO_ROW:
            raise MemoryError
    if rows.slots == NULL and rows_grow(rows) < 0:
        raise MemoryError
    return 0


cdef tuple _row(u64 key, const Total *total, const u64 *percentiles):
    return (
        key & 0xffffffff, <s64>(key >> 32) - 1, total.count, total.minimum, percentiles[0],
        percentiles[1], percentiles[2], total.maximum, total.ticks, total.self_ticks,
    )


def describe(const u8[::1] data not None):
    """Return what a log says of itself, as in `Account.logs`: its frames are read, its records are not.

    Problems are those between buffers. LogError when the bytes are not a log.
    """
    cdef Frames frames = Frames()
    read_header(data, &frames.header)
    if frames.header.type == 1:
        frames.find(data, True)
    return _describe(&frames.header, &frames.blocks, &frames.problems)


def account(
    logs not None,
    *,
    str by="function",
    functions=None,
    threads=None,
    u64 shortest=0,
    u64 from_tsc=0,
    u64 until_tsc=0xffffffffffffffff,
    bint deduce=False,
    bint calls=False,
    bint nodes=False,
    bint split=False,
    bint percentiles=True,
    u64[::1] position=None,
):
    """Account for the calls of logs (a buffer or a list of them); LogError when the bytes are not a log.

    `by` says what a row is: "function", "thread" (a function in a thread) or "edge" (a function called by
    a function). `functions`: ids that are looked at (None: all); the time of others is that of their
    callers. `threads`: thread ids that are looked at. `shortest`, `from_tsc`, `until_tsc`: shorter calls
    and those that begin outside are left out. `deduce`: calls that lost their exit end with their caller,
    and count. `calls` keeps the columns that `columns()` returns, `nodes` the tree of stacks, of all threads or
    (`split`) of each. Without `percentiles` they are 0, and it takes less time. `position`, two numbers that
    another thread may look at: bytes that have been read, and of how many.

    Rows are (function, thread | caller | -1, count, min, median, 90th, 99th, max, sum, self), nodes (parent |
    -1 at a root | -2 - n at a root of `roots[n]`, function, count, ticks, self ticks).
    """
    cdef Account out = Account()
    cdef Expander *expander = &out._expander
    cdef list buffers = list(logs) if isinstance(logs, (list, tuple)) else [logs]
    expander.options.by = BY[by]
    expander.options.wants_calls = calls
    expander.options.wants_durations = percentiles
    expander.options.wants_nodes = nodes
    expander.options.splits_nodes = split
    expander.options.counts_deduced = deduce
    expander.options.shortest = shortest
    expander.options.from_tsc = from_tsc
    expander.options.until_tsc = until_tsc
    if functions is not None:
        _fill(&out._shown, functions)
        expander.shown = &out._shown
    if threads is not None:
        _fill(&out._wanted, threads)
        out._wanted_or_null = &out._wanted
    if expander_init(expander, sum([len(data) // FUNCTION_BYTES for data in buffers]) + 1) < 0:
        raise MemoryError
    if position is not None:
        if position.shape[0] < 2:
            raise ValueError("position has room for two numbers")
        position[0], position[1] = 0, sum([len(data) for data in buffers])
        expander.position = &position[0]
    for data in buffers:
        out._add(data)
    if position is not None:
        position[0] = position[1]
    expander.position = NULL
    out._summarise()
    if nodes:
        out._list_nodes()
    return out
