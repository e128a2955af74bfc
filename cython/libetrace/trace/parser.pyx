# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Parses a trace on threads into the columns of a database image."""
from libc.stdlib cimport calloc, free
from libc.string cimport memset

import os

from libetrace.core.errors import Error
from libetrace.core.limits import check
from libetrace.image.file import FilePiece

from libetrace.core.crew cimport MAX_THREADS, run_crew
from libetrace.image.column_builder cimport Column, make_column
from libetrace.trace.events cimport ETRACE_N_EVENTS
from libetrace.trace.line_grammar cimport forms
from libetrace.core.memory cimport Buffer
from libetrace.core.spill cimport Spill, is_spilled, spill_init
from libetrace.trace.pipeline cimport N_PASSES, is_threaded, run_pass, trace_free, trace_init
from libetrace.trace.report cimport N_PROBLEM_LINES, N_PROBLEMS
from libetrace.image.schema cimport N_COLUMNS, OPEN_USES_OPEN, PATHS_MODE
from libetrace.trace.source cimport Source
from libetrace.trace.tables cimport OPENS, Part, Tables, tables_free
from libetrace.trace.trace cimport Process, Trace, has_rows
from libetrace.core.types cimport u32, u64

PROBLEMS = (
    "no-prefix", "unknown-tag", "bad-arguments", "wrong-upid", "stray-string", "bad-string",
    "incomplete", "cut-off", "no-follower", "no-leader", "second-parent", "no-environment",
    "lost-events", "too-many-pipes",
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


# The columns of a part that lies in the file.
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
