# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The passes over a trace, in order: reader -> joiner -> verifier -> tables.

Passes over chunks, processes and paths are for all threads at once; what joins their results is
serial, and costs by process or by distinct string, not by line.
"""
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from libetrace.trace.joiner cimport join_families, join_processes
from libetrace.core.memory cimport Buffer, arena_free, buffer_add, buffer_free
from libetrace.core.interned cimport names_free, names_init
from libetrace.trace.paths cimport join_paths, prepare_paths
from libetrace.trace.pipes cimport link_pipes
from libetrace.trace.reader cimport free_chunk, read_chunk
from libetrace.trace.event_model cimport MAX_CHUNKS, N_KINDS, Chunk
from libetrace.trace.report cimport report_merge
from libetrace.core.scan cimport ETRACE_PAD, etrace_add, etrace_find_newline, etrace_take
from libetrace.core.spill cimport spill_drop_all, spill_free, spill_init
from libetrace.trace.stream cimport (
    stream_free, stream_init, stream_lock, stream_read, stream_unlock,
)
from libetrace.trace.tables cimport (
    build_parts, index_opens, number_rows, renumber_parts, tables_free, tables_init,
)
from libetrace.trace.trace cimport N_USES, Worker
from libetrace.core.types cimport u16, u32, u64
from libetrace.trace.verifier cimport verify_processes

cdef extern from "<sys/mman.h>" nogil:
    enum: MADV_DONTNEED
    int madvise(void *at, size_t size, int advice)

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    enum: CLOCK_MONOTONIC
    int clock_gettime(int clock, timespec *now)

cdef enum:
    CHUNK_BYTES = 4 << 20  # small enough for the threads to end together
    CHUNKS_A_DROP = 16
    PAGE_BYTES = 4096
    NS_PER_SECOND = 1000000000


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


cdef int read_pass(Trace *trace, Tables *tables, unsigned int worker) noexcept nogil:
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


cdef int join_pass(Trace *trace, Tables *tables, unsigned int worker) noexcept nogil:
    count_kinds(trace)
    return join_processes(trace)


cdef int verify_pass(Trace *trace, Tables *tables, unsigned int worker) noexcept nogil:
    return verify_processes(trace, worker)


cdef int family_pass(Trace *trace, Tables *tables, unsigned int worker) noexcept nogil:
    cdef u32 i
    for i in range(trace.n_workers):
        report_merge(&trace.report, &trace.workers[i].report, 0)
    return -1 if join_families(trace) < 0 or join_paths(trace) < 0 else 0


cdef int path_pass(Trace *trace, Tables *tables, unsigned int worker) noexcept nogil:
    return prepare_paths(trace)


cdef int pipe_pass(Trace *trace, Tables *tables, unsigned int worker) noexcept nogil:
    return -1 if link_pipes(trace) < 0 else tables_init(tables, trace)


cdef int build_pass(Trace *trace, Tables *tables, unsigned int worker) noexcept nogil:
    return build_parts(tables, trace)


cdef int number_pass(Trace *trace, Tables *tables, unsigned int worker) noexcept nogil:
    return number_rows(tables, trace)


cdef int renumber_pass(Trace *trace, Tables *tables, unsigned int worker) noexcept nogil:
    return renumber_parts(tables, trace)


cdef int index_pass(Trace *trace, Tables *tables, unsigned int worker) noexcept nogil:
    return index_opens(tables, &trace.spill)


cdef Pass PASSES[N_PASSES]
PASSES[0] = read_pass
PASSES[1] = join_pass
PASSES[2] = verify_pass
PASSES[3] = family_pass
PASSES[4] = path_pass
PASSES[5] = pipe_pass
PASSES[6] = build_pass
PASSES[7] = number_pass
PASSES[8] = renumber_pass
PASSES[9] = index_pass


# Whether every thread takes part in the pass.
cdef bint is_threaded(int number) noexcept nogil:
    return PASSES[number] in (read_pass, verify_pass, path_pass, build_pass, renumber_pass)


cdef int run_pass(int number, Trace *trace, Tables *tables, unsigned int worker) noexcept nogil:
    return PASSES[number](trace, tables, worker)


cdef u64 make_seed() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <u64>now.tv_sec * NS_PER_SECOND + <u64>now.tv_nsec ^ <u64>&now


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
    trace.seed = make_seed()
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
    stream_free(&trace.stream)
    spill_free(&trace.spill)
    free(trace.chunks)
    free(trace.processes)
    free(trace.slots)
    free(trace.paths)
    free(trace.edges)
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
