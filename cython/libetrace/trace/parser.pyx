# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Parses a trace on threads into the columns of a database image: reader -> joiner -> verifier -> tables.

Passes over chunks, processes and paths are for all threads at once; what joins their results is
serial, and costs by process or by distinct string, not by line.
"""
import os

from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from libetrace.core.crew cimport MAX_THREADS, run_crew
from libetrace.core.interned cimport names_free, names_init, names_seed
from libetrace.core.memory cimport (
    Buffer, Spill, arena_free, buffer_free, is_spilled, spill_drop_all, spill_free, spill_init,
)
from libetrace.core.scan cimport ETRACE_PAD, etrace_add, etrace_find_newline, etrace_take
from libetrace.core.types cimport u16, u32, u64
from libetrace.image.column_builder cimport make_column
from libetrace.image.schema cimport N_COLUMNS, OPEN_USES_OPEN, PATHS_MODE
from libetrace.trace.events cimport ETRACE_N_EVENTS
from libetrace.trace.joiner cimport join_families, join_paths, join_processes, prepare_paths
from libetrace.trace.line_grammar cimport forms
from libetrace.trace.pipes cimport link_pipes
from libetrace.trace.reader cimport free_chunk, read_chunk
from libetrace.trace.source cimport Source
from libetrace.trace.tables cimport (
    OPENS, Part, Tables, build_parts, index_opens, number_rows, renumber_parts, tables_free, tables_init,
)
from libetrace.trace.trace cimport (
    MAX_CHUNKS, N_KINDS, N_PROBLEMS, N_PROBLEM_LINES, N_USES, Chunk, Process, Trace, Worker, has_rows,
    report_merge, stream_free, stream_init, stream_lock, stream_read, stream_unlock,
)
from libetrace.trace.verifier cimport verify_processes

from libetrace.core.errors import Error
from libetrace.core.limits import check
from libetrace.image.file import FilePiece

cdef extern from "<sys/mman.h>" nogil:
    enum: MADV_DONTNEED
    int madvise(void *at, size_t size, int advice)

cdef enum:
    CHUNK_BYTES = 4 << 20  # small enough for the threads to end together
    CHUNKS_A_DROP = 16
    PAGE_BYTES = 4096


# The passes, in order.
cdef enum:
    READ_CHUNKS
    JOIN_CHUNKS
    VERIFY
    JOIN_ALL  # families and paths
    LOOK_UP_PATHS
    LINK_PIPES
    BUILD_PARTS
    NUMBER_ROWS
    RENUMBER_PARTS
    INDEX_OPENS
    N_PASSES


# Releases pages that have been read; the kernel reads them again if needed.
cdef void drop_pages(const char *begin, const char *end) noexcept nogil:
    cdef size_t first = (<size_t>begin + PAGE_BYTES - 1) & ~<size_t>(PAGE_BYTES - 1)
    cdef size_t last = <size_t>end & ~<size_t>(PAGE_BYTES - 1)
    if first < last:
        madvise(<void *>first, last - first, MADV_DONTNEED)


cdef int read_lines(Trace *trace, Chunk *chunk, unsigned int worker) noexcept nogil:
    cdef const char *begin = chunk.begin
    cdef const char *end = chunk.end
    chunk.arena = &trace.workers[worker].arena
    chunk.names = &trace.workers[worker].names
    chunk.ranks = &trace.workers[worker].ranks
    if read_chunk(chunk) < 0:
        return -1
    etrace_add(&trace.load.done, end - begin)
    if trace.is_mapped:
        drop_pages(begin, end)
    if chunk.number % CHUNKS_A_DROP == 0:
        spill_drop_all(&trace.spill)
    return 0


# The next chunk of a stream, with its text; NULL when there is none.
cdef Chunk *take_chunk(Trace *trace, Buffer *text) noexcept nogil:
    cdef Chunk *chunk = NULL
    stream_lock(&trace.stream)
    if stream_read(&trace.stream, text, stream_chunk_bytes(trace), &trace.load.cancelled) < 0:
        trace.load.failed = 1
    elif text.len:
        chunk = &trace.chunks[trace.n_chunks]
        chunk.number = <u16>trace.n_chunks
        chunk.is_first = trace.n_chunks == 0
        chunk.begin = text.data
        chunk.end = text.data + text.len
        trace.n_chunks += 1
    stream_unlock(&trace.stream)
    return chunk


# Chunks grow with a stream, so that their number keeps within 16 bits.
cdef size_t stream_chunk_bytes(const Trace *trace) noexcept nogil:
    if trace.n_chunks >= MAX_CHUNKS - 1:
        return <size_t>1 << 62  # all that is left
    return trace.chunk_bytes << (trace.n_chunks >> 12)


cdef int read_stream(Trace *trace, unsigned int worker) noexcept nogil:
    cdef Buffer text
    cdef Chunk *chunk
    cdef int status = 0
    memset(&text, 0, sizeof(text))
    while status == 0 and not trace.load.failed:
        chunk = take_chunk(trace, &text)
        if chunk == NULL:
            break
        status = read_lines(trace, chunk, worker)
    buffer_free(&text)
    return -1 if trace.load.failed else status


cdef int read_chunks(Trace *trace, unsigned int worker) noexcept nogil:
    cdef u64 i
    if trace.data == NULL:
        return read_stream(trace, worker)
    while not trace.load.cancelled and not trace.load.failed:
        i = etrace_take(&trace.load.taken)
        if i >= trace.n_chunks:
            break
        if read_lines(trace, &trace.chunks[i], worker) < 0:
            return -1
    return 0


cdef void count_kinds(Trace *trace) noexcept nogil:
    cdef u32 i
    cdef u32 kind
    for i in range(trace.n_chunks):
        for kind in range(<u32>N_KINDS):
            trace.n_kinds_seen[kind] += trace.chunks[i].n_events[kind]


cdef int join_all(Trace *trace) noexcept nogil:
    cdef u32 i
    for i in range(trace.n_workers):
        report_merge(&trace.report, &trace.workers[i].report, 0)
    return -1 if join_families(trace) < 0 or join_paths(trace) < 0 else 0


# Whether every thread takes part in the pass.
cdef bint is_threaded(int number) noexcept nogil:
    return number in (READ_CHUNKS, VERIFY, LOOK_UP_PATHS, BUILD_PARTS, RENUMBER_PARTS)


# -1 when there is no memory.
cdef int run_pass(int number, Trace *trace, Tables *tables, unsigned int worker) noexcept nogil:
    if number == READ_CHUNKS:
        return read_chunks(trace, worker)
    if number == JOIN_CHUNKS:
        count_kinds(trace)
        return join_processes(trace)
    if number == VERIFY:
        return verify_processes(trace, worker)
    if number == JOIN_ALL:
        return join_all(trace)
    if number == LOOK_UP_PATHS:
        return prepare_paths(trace)
    if number == LINK_PIPES:
        return -1 if link_pipes(trace) < 0 else tables_init(tables, trace)
    if number == BUILD_PARTS:
        return build_parts(tables, trace)
    if number == NUMBER_ROWS:
        return number_rows(tables, trace)
    if number == RENUMBER_PARTS:
        return renumber_parts(tables, trace)
    return index_opens(tables, &trace.spill)


# Cuts the trace at line ends.
cdef int cut_chunks(Trace *trace, size_t chunk_bytes) noexcept nogil:
    cdef const char *at = trace.data
    cdef const char *end = trace.data + trace.load.total
    cdef Chunk *chunk
    if not chunk_bytes:
        chunk_bytes = CHUNK_BYTES
    if trace.load.total / chunk_bytes >= MAX_CHUNKS - 1:
        chunk_bytes = trace.load.total / (MAX_CHUNKS - 1) + 1
    trace.chunk_bytes = chunk_bytes
    trace.chunks = <Chunk *>calloc(
        trace.load.total / chunk_bytes + 1 if trace.data != NULL else MAX_CHUNKS, sizeof(Chunk))
    if trace.chunks == NULL:
        return -1
    while at < end:
        chunk = &trace.chunks[trace.n_chunks]
        chunk.number = <u16>trace.n_chunks
        chunk.is_first = trace.n_chunks == 0
        chunk.begin = at
        at = end if <size_t>(end - at) <= chunk_bytes else \
            etrace_find_newline(at + chunk_bytes - 1, end) + 1
        if at > end:
            at = end
        chunk.end = at
        trace.n_chunks += 1
    return 0


cdef int trace_init(Trace *trace, const char *data, size_t size, int fd, u32 n_workers,
                    size_t chunk_bytes) noexcept nogil:
    cdef u32 i
    memset(trace, 0, sizeof(trace[0]))
    stream_init(&trace.stream, fd)
    spill_init(&trace.spill, -1, 0)
    trace.data = data
    trace.load.total = size
    trace.seed = names_seed()
    trace.n_workers = n_workers
    for i in range(n_workers):
        trace.workers[i].arena.spill = &trace.spill
        if names_init(&trace.workers[i].names, trace.seed) < 0:
            return -1
    return cut_chunks(trace, chunk_bytes)


cdef void trace_free(Trace *trace) noexcept nogil:
    cdef Worker *worker
    cdef u32 i
    for i in range(trace.n_chunks):
        free_chunk(&trace.chunks[i])
    for i in range(trace.n_workers):
        worker = &trace.workers[i]
        arena_free(&worker.arena)
        names_free(&worker.names)
        free(worker.ranks)
        buffer_free(&worker.claims)
        buffer_free(&worker.renamed)
    stream_free(&trace.stream)
    spill_free(&trace.spill)
    free(trace.chunks)
    free(trace.processes)
    free(trace.slots)
    free(trace.paths)
    free(trace.edges)
    buffer_free(&trace.moved)
    for i in range(<u32>N_USES):
        free(trace.uses[i])


# All passes on this thread.
cdef int run_all(Trace *trace, Tables *tables) noexcept nogil:
    cdef int number
    for number in range(N_PASSES):
        trace.load.taken = 0
        if run_pass(number, trace, tables, 0) < 0:
            return -1
    return 0


# For the fuzzer, through __pyx_capi__: parses memory on one thread without touching the file system,
# in chunks of `chunk_bytes` (0: as usual). 0; -1 when there is no memory. Not in the .pxd: every
# module that reads it would have a pointer that it does not use.
cdef api int etrace_parse_memory(const char *data, size_t size, size_t chunk_bytes) noexcept nogil:
    cdef Trace *trace = <Trace *>calloc(1, sizeof(Trace))
    cdef Tables *tables = <Tables *>calloc(1, sizeof(Tables))
    cdef char *copy = <char *>calloc(1, size + ETRACE_PAD)
    cdef int status = -1
    if trace != NULL and tables != NULL and copy != NULL:
        if size:
            memcpy(copy, data, size)
        status = trace_init(trace, copy, size, -1, 1, chunk_bytes)
        trace.no_stat = True
        if status == 0:
            status = run_all(trace, tables)
        tables_free(tables, trace)
        trace_free(trace)
    free(copy)
    free(tables)
    free(trace)
    return status


# ---- the parser of Python ----


PROBLEMS = (
    "no-prefix", "unknown-tag", "bad-arguments", "wrong-upid", "stray-string", "bad-string",
    "incomplete", "cut-off", "no-follower", "no-leader", "second-parent", "no-environment",
    "lost-events", "too-many-pipes", "too-many-moves",
)
assert len(PROBLEMS) == N_PROBLEMS
STREAM_HINT = "name the trace, or give it through a pipe"
EVENT_TAGS = tuple([forms.tags[i].text.decode() for i in range(ETRACE_N_EVENTS)])


# A parse as its threads see it.
cdef struct Parse:
    Trace *trace
    Tables *tables
    int number  # of the pass


cdef int work(void *argument, u32 worker) noexcept nogil:
    cdef Parse *parse = <Parse *>argument
    return run_pass(parse.number, parse.trace, parse.tables, worker)


cdef int run_passes(Trace *trace, Tables *tables, progress) except -1:
    cdef Parse parse
    cdef int number
    parse.trace = trace
    parse.tables = tables
    for number in range(N_PASSES):
        parse.number = number
        run_crew(work, &parse, &trace.load, trace.n_workers if is_threaded(number) else 1,
                 progress)
        if trace.stream.error:
            raise Error(f"cannot be read: {os.strerror(trace.stream.error)}", STREAM_HINT)
        if trace.spill.error:
            raise OSError(trace.spill.error, os.strerror(trace.spill.error))
        if trace.load.failed:
            check(trace.load.limit)
    return 0


cdef list list_problems(const Trace *trace):
    cdef int problem
    cdef int i
    return [
        (trace.report.count[problem],
         [trace.report.lines[problem][i] for i in range(N_PROBLEM_LINES)
          if trace.report.lines[problem][i]])
        for problem in range(N_PROBLEMS)
    ]


cdef dict make_counts(const Trace *trace, const Tables *tables):
    cdef u32 i
    cdef const Process *process
    cdef u64 n_processes = 0
    cdef u64 n_programs = 0
    cdef u64 number
    cdef bint has_uses = False
    for number in range(tables.n_parts):
        has_uses |= tables.parts[number].len[OPEN_USES_OPEN] > 0
    for i in range(trace.n_processes):
        process = &trace.processes[i]
        if has_rows(process):
            n_processes += not process.is_thread
            n_programs += process.n_programs
    return {
        "bytes": trace.load.done,
        "lines": trace.n_lines,
        "events": [trace.n_kinds_seen[i] for i in range(ETRACE_N_EVENTS)],
        "processes": n_processes,
        "executions": n_programs,
        "files": tables.parts[tables.n_parts].first[OPENS],
        "paths": tables.columns[PATHS_MODE].len,
        "pipe_links": trace.n_edges,
        "has_uses": has_uses,
        "problems": list_problems(trace),
    }


# The columns of a part that is in the file.
cdef list list_spilled(const Part *part, const Spill *spill, file):
    cdef u64 begin = part.data - spill.base
    cdef int i
    return [FilePiece(file, begin + part.start[i], part.len[i]) for i in range(N_COLUMNS)]


# The columns of a part, over memory that they take from it.
cdef list list_part(Part *part):
    cdef Buffer whole
    cdef int i
    memset(&whole, 0, sizeof(whole))
    whole.data = part.data
    whole.len = part.start[N_COLUMNS]
    part.data = NULL
    view = memoryview(make_column(&whole))
    return [view[part.start[i]:part.start[i] + part.len[i]] for i in range(N_COLUMNS)]


# The pieces of each column, in order.
cdef list list_columns(Tables *tables, const Spill *spill, file):
    cdef Part *part
    cdef u64 number
    cdef int i
    pieces = [[make_column(&tables.columns[i])] for i in range(N_COLUMNS)]
    for number in range(tables.n_parts):
        part = &tables.parts[number]
        found = list_spilled(part, spill, file) if is_spilled(spill, part.data) else list_part(part)
        for i in range(N_COLUMNS):
            if part.len[i]:
                pieces[i].append(found[i])
    return pieces


cdef tuple parse_source(Source source, u32 n_workers, progress, size_t chunk_bytes, bint stat,
                        file, u64 budget):
    cdef Trace *trace = <Trace *>calloc(1, sizeof(Trace))
    cdef Tables tables
    if trace == NULL:
        raise MemoryError
    memset(&tables, 0, sizeof(tables))
    try:
        if trace_init(trace, source.data, source.size, source.fd, n_workers, chunk_bytes) < 0:
            raise MemoryError
        if file is not None:
            spill_init(&trace.spill, file.fileno(), budget)
        trace.no_stat = not stat
        trace.is_mapped = source.is_mapped
        run_passes(trace, &tables, progress)
        counts = make_counts(trace, &tables)
        return list_columns(&tables, &trace.spill, file), counts
    finally:
        tables_free(&tables, trace)
        trace_free(trace)
        free(trace)


def parse(Source source not None, *, u32 jobs=1, progress=None, size_t chunk_bytes=0,
          bint stat=True, file=None, u64 budget=0):
    """Parse a trace on `jobs` threads; return the columns of its tables and counts (see the .pyi).

    For each column of the schema there is a list of buffers, its pieces in order; columns of
    products have none that holds anything. `progress(done, total)` is called with bytes about every
    50 ms. `chunk_bytes` cuts the trace into chunks of about that size, which changes nothing of the
    result. Without `stat` no file is asked for its size and mode. Events and rows beyond `budget`
    bytes go to the empty `file`, if there is one, and stay there: pieces are then parts of it
    (image.file.FilePiece). LimitError, `libetrace.error` when a stream cannot be read, OSError when
    the file cannot be written, MemoryError, and whatever `progress` or a signal handler raises.
    """
    if not 1 <= jobs <= MAX_THREADS:
        raise ValueError(f"jobs must be 1 to {MAX_THREADS}, not {jobs}")
    return parse_source(source, jobs, progress, chunk_bytes, stat, file, budget)
