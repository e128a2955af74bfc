# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Parses a trace on threads.

The calling thread does none of the work: it waits, reports progress and lets Ctrl-C through.
"""
import os

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport ETIMEDOUT, errno
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from libetrace.trace.builder cimport (
    Output, output_free, pthread_cond_t, pthread_mutex_t, write_all,
)
from libetrace.trace.environment cimport write_environment, write_mounts
from libetrace.trace.events cimport ETRACE_N_EVENTS
from libetrace.trace.line_grammar cimport forms
from libetrace.core.memory cimport Buffer, buffer_free
from libetrace.trace.pipeline cimport N_PASSES, is_threaded, run_pass, trace_free, trace_init
from libetrace.trace.report cimport N_PROBLEM_LINES, N_PROBLEMS
from libetrace.core.scan cimport etrace_peek
from libetrace.trace.source cimport Source
from libetrace.trace.trace cimport MAX_THREADS, Trace
from libetrace.core.types cimport u32, u64

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass
    int pthread_create(pthread_t *thread, void *attributes, void *(*start)(void *) noexcept nogil,
                       void *argument)
    int pthread_join(pthread_t thread, void **result)
    int pthread_mutex_init(pthread_mutex_t *lock, void *attributes)
    int pthread_mutex_lock(pthread_mutex_t *lock)
    int pthread_mutex_unlock(pthread_mutex_t *lock)
    int pthread_cond_init(pthread_cond_t *cond, void *attributes)
    int pthread_cond_signal(pthread_cond_t *cond)
    int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const timespec *until)

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    enum: CLOCK_REALTIME
    int clock_gettime(int clock, timespec *now)

cdef enum:
    TICK_NS = 50000000
    NS_PER_SECOND = 1000000000

PROBLEMS = (
    "no-prefix", "unknown-tag", "bad-arguments", "wrong-upid", "stray-string", "bad-string",
    "incomplete", "cut-off", "no-follower", "no-leader", "second-parent", "no-environment",
    "lost-events", "too-many-pipes",
)
assert len(PROBLEMS) == N_PROBLEMS
EVENT_TAGS = tuple([forms.tags[i].text.decode() for i in range(ETRACE_N_EVENTS)])


cdef struct Crew:
    u32 n_busy
    pthread_mutex_t lock
    pthread_cond_t done


# What a thread is to do, and who is to know when it is done.
cdef struct Errand:
    Trace *trace
    Output *output
    int number  # of the pass
    u32 worker
    Crew *crew
    pthread_t thread


cdef void *run_errand(void *argument) noexcept nogil:
    cdef Errand *errand = <Errand *>argument
    cdef Crew *crew = errand.crew
    if run_pass(errand.number, errand.trace, errand.output, errand.worker) < 0:
        errand.trace.failed = 1
    pthread_mutex_lock(&crew.lock)
    crew.n_busy -= 1
    pthread_cond_signal(&crew.done)
    pthread_mutex_unlock(&crew.lock)
    return NULL


# Waits until all are done or a tick is over; whether some are still busy.
cdef bint wait_a_tick(Crew *crew) noexcept nogil:
    cdef timespec until
    cdef bint is_busy
    clock_gettime(CLOCK_REALTIME, &until)
    until.tv_nsec += TICK_NS
    if until.tv_nsec >= NS_PER_SECOND:
        until.tv_nsec -= NS_PER_SECOND
        until.tv_sec += 1
    pthread_mutex_lock(&crew.lock)
    while crew.n_busy:
        if pthread_cond_timedwait(&crew.done, &crew.lock, &until) == ETIMEDOUT:
            break
    is_busy = crew.n_busy > 0
    pthread_mutex_unlock(&crew.lock)
    return is_busy


cdef u32 start_crew(Crew *crew, Errand *errands, Trace *trace, Output *output, int number) noexcept nogil:
    cdef u32 n = trace.n_workers if is_threaded(number) else 1
    cdef u32 i
    trace.taken = 0
    crew.n_busy = n
    for i in range(n):
        errands[i].trace = trace
        errands[i].output = output
        errands[i].number = number
        errands[i].worker = i
        errands[i].crew = crew
        if pthread_create(&errands[i].thread, NULL, run_errand, &errands[i]) != 0:
            trace.failed = 1
            pthread_mutex_lock(&crew.lock)
            crew.n_busy -= n - i
            pthread_mutex_unlock(&crew.lock)
            return i
    return n


# Runs a pass; raises what signal handlers and `progress` raise, after the threads have ended.
cdef int run_crew(Trace *trace, Output *output, int number, progress) except -1:
    cdef Crew crew
    cdef Errand errands[MAX_THREADS]
    cdef bint is_busy = True
    cdef u32 n
    cdef u32 i
    error = None
    memset(&crew, 0, sizeof(crew))
    pthread_mutex_init(&crew.lock, NULL)
    pthread_cond_init(&crew.done, NULL)
    n = start_crew(&crew, errands, trace, output, number)
    while is_busy:
        with nogil:
            is_busy = wait_a_tick(&crew)
        try:
            PyErr_CheckSignals()
            if progress is not None:
                progress(etrace_peek(&trace.done_bytes), trace.size)
        except BaseException as raised:
            error = raised
            trace.cancelled = 1
    for i in range(n):
        pthread_join(errands[i].thread, NULL)
    if error is not None:
        raise error
    return 0


cdef int check(const Trace *trace, const Output *output) except -1:
    if output.error:
        raise OSError(output.error, os.strerror(output.error))
    if trace.failed:
        raise MemoryError
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


cdef dict make_counts(const Trace *trace, const Output *output):
    cdef u32 i
    cdef u64 n_processes = 0
    cdef u64 n_executions = 0
    for i in range(trace.n_processes):
        if trace.processes[i].upid != 0 and trace.processes[i].n_events > 0:
            n_processes += 1
            n_executions += trace.processes[i].n_programs + 1
    return {
        "lines": trace.n_lines,
        "events": [trace.n_kinds_seen[i] for i in range(ETRACE_N_EVENTS)],
        "processes": n_processes,
        "executions": n_executions,
        "entries": output.n_entries,
        "files": output.n_files,
        "paths": trace.n_paths,
        "pipe_links": trace.n_edges,
        "problems": list_problems(trace),
    }


cdef int write_side_file(Trace *trace, int fd, bint is_environment, list texts) except -1:
    cdef Buffer text
    cdef int status
    memset(&text, 0, sizeof(text))
    try:
        status = write_environment(trace, &text) if is_environment else write_mounts(trace, &text)
        if status < 0:
            raise MemoryError
        if fd < 0:
            texts.append(text.data[:text.len])
        elif write_all(fd, text.data, text.len, 0) < 0:
            raise OSError(errno, os.strerror(errno))
    finally:
        buffer_free(&text)
    return 0


cdef tuple parse_source(Source source, tuple fds, u32 n_workers, u64 split, progress,
                        size_t chunk_bytes, bint stat):
    cdef Trace *trace = <Trace *>calloc(1, sizeof(Trace))
    cdef Output output
    cdef int number
    cdef list texts = []
    if trace == NULL:
        raise MemoryError
    memset(&output, 0, sizeof(output))
    output.fd = fds[0]
    output.split_bytes = split
    try:
        if trace_init(trace, source.data, source.size, n_workers, chunk_bytes) < 0:
            raise MemoryError
        trace.no_stat = not stat
        trace.is_mapped = source.is_mapped
        for number in range(N_PASSES):
            run_crew(trace, &output, number, progress)
            check(trace, &output)
        write_side_file(trace, fds[1], True, texts)
        write_side_file(trace, fds[2], False, texts)
        if fds[0] < 0:
            texts.insert(0, output.text.data[:output.text.len])
        return make_counts(trace, &output), texts
    finally:
        output_free(&output, trace)
        trace_free(trace)
        free(trace)


def parse(Source source not None, tuple outputs not None, *, u32 jobs, u64 split=0, progress=None,
          size_t chunk_bytes=0):
    """Parse a trace on `jobs` threads and write the database, the environment and the mounts.

    `outputs` are three descriptors of empty regular files. `progress(done, total)` is called with
    bytes about every 50 ms. Entries whose files have paths of more than `split` bytes together are
    broken into several. Raises OSError when writing fails, MemoryError, and whatever `progress` or a
    signal handler raises; the files then hold part of the text. Returns counts (see the .pyi).
    """
    if not 1 <= jobs <= MAX_THREADS:
        raise ValueError(f"jobs must be 1 to {MAX_THREADS}, not {jobs}")
    return parse_source(source, outputs, jobs, split, progress, chunk_bytes, True)[0]


def parse_bytes(bytes data not None, *, size_t chunk_bytes=0, u64 split=0, bint stat=True):
    """Parse a trace in memory on one thread; return the three JSON texts and the counts.

    `chunk_bytes` cuts the trace into chunks of about that size, which changes nothing of the result.
    """
    source = Source.from_bytes(data)
    counts, texts = parse_source(source, (-1, -1, -1), 1, split, None, chunk_bytes, stat)
    return (*texts, counts)
