# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Joins what the threads have read: the parts of each upid, upids into families, strings into paths.

An event may begin in one chunk and have its strings in the next ones: those are strays there, and
are given to the event here, in order. All of it but lstat is serial and costs by upid or by distinct
string, not by line. A string gets the number of its place in the order of bytes, so that an opened
file is a pair of numbers. The lstat of a path is made once, however often it was opened.
"""
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memchr, memcmp, memset

from libetrace.core.interned cimport NO_NAME, Name, Names, names_intern
from libetrace.core.limits cimport EXECUTIONS, PROCESSES, ceilings, pass_limit
from libetrace.core.memory cimport Buffer, buffer_free, buffer_reserve, spill_drop_all
from libetrace.core.scan cimport ETRACE_PAD, etrace_hash64, etrace_take
from libetrace.core.types cimport INT64_MAX, s64, u8, u32, u64
from libetrace.image.schema cimport EXISTS, TYPE_SHIFT
from libetrace.trace.directories cimport Moved, find_moved
from libetrace.trace.event_assembly cimport add_line, finish_event, waits_for_variable
from libetrace.trace.line_grammar cimport find_code
from libetrace.trace.mounts cimport join_mounts
from libetrace.trace.reader cimport free_chunk
from libetrace.trace.trace cimport (
    CLONE_FILES, CLONE_THREAD, CUT_OFF, DEAD, GOES_ON, INCOMPLETE, NO_PROCESS, N_USES,
    SECOND_PARENT, STRAY_STRING, UNSEEN, Chunk, Claim, Path, Process, Program, Stray, Task, Worker,
    compare_events, drop_dead, event_line, find_process, has_rows, report_add, report_merge,
)

cdef enum:
    UNKNOWN = 0
    ON_PATH = 1
    KNOWN = 2
    HAS_DEAD = 3
    CHUNKS_A_DROP = 16
    CLAIMS_A_DROP = 512  # each may touch two runs of 16 pages
    TAILS_A_DROP = 1024
    PROCESSES_A_DROP = 1 << 14


cdef int compare_upids(const void *a, const void *b) noexcept nogil:
    cdef s64 x = (<const Process *>a).upid
    cdef s64 y = (<const Process *>b).upid
    return (x > y) - (x < y)


# (Re)makes the table from upid to process for `cap` processes.
cdef int index_processes(Trace *trace, u64 cap) noexcept nogil:
    cdef u64 n_slots = 64
    cdef u32 i
    cdef u32 at
    while n_slots < 2 * cap:
        n_slots *= 2
    if n_slots > <u64>1 << 32:
        return -1
    free(trace.slots)
    trace.slots = <u32 *>calloc(n_slots, sizeof(u32))
    if trace.slots == NULL:
        return -1
    trace.mask = <u32>(n_slots - 1)
    for i in range(trace.n_processes):
        at = <u32>etrace_hash64(<u64>trace.processes[i].upid, trace.seed) & trace.mask
        while trace.slots[at]:
            at = (at + 1) & trace.mask
        trace.slots[at] = i + 1
    return 0


cdef Process *new_process(Trace *trace, Buffer *processes, s64 upid) noexcept nogil:
    cdef Process *process
    cdef u32 at
    if trace.n_processes >= ceilings[PROCESSES]:
        pass_limit(PROCESSES)
        return NULL
    if buffer_reserve(processes, sizeof(Process)) < 0:
        return NULL
    trace.processes = <Process *>processes.data
    process = &trace.processes[trace.n_processes]
    memset(process, 0, sizeof(Process))
    process.upid = upid
    processes.len += sizeof(Process)
    trace.n_processes += 1
    if 2 * <u64>trace.n_processes > trace.mask:
        return process if index_processes(trace, 2 * <u64>trace.n_processes) == 0 else NULL
    at = <u32>etrace_hash64(<u64>upid, trace.seed) & trace.mask
    while trace.slots[at]:
        at = (at + 1) & trace.mask
    trace.slots[at] = trace.n_processes
    return process


cdef int join_strays(Trace *trace, Chunk *chunk) noexcept nogil:
    cdef Stray *strays = <Stray *>chunk.strays.data
    cdef const char *end
    cdef Process *process
    cdef u32 number
    cdef size_t i
    for i in range(chunk.strays.len / sizeof(Stray)):
        number = find_process(trace, strays[i].task.upid)
        process = &trace.processes[number] if number != NO_PROCESS else NULL
        if process == NULL or process.tail == NULL:
            report_add(&chunk.report, STRAY_STRING, strays[i].line, 1)
            continue
        end = strays[i].text + strays[i].len
        if add_line(process.tail_chunk, process.tail, find_code(strays[i].text, end),
                    strays[i].text, end, chunk.first_line + strays[i].line
                    - process.tail_chunk.first_line) < 0:
            return -1
    return 0


cdef int join_task(Process *process, Chunk *chunk, Task *task) noexcept nogil:
    if task.begins_with_upid and process.tail != NULL \
            and waits_for_variable(&process.tail.assembly):
        task.first.access |= GOES_ON
    elif process.tail != NULL and finish_event(process.tail_chunk, process.tail, INCOMPLETE) < 0:
        return -1
    process.tail = task
    process.tail_chunk = chunk
    if task.first == NULL:
        return 0
    if process.first == NULL:
        process.first = task.first
    else:
        process.last.next = task.first
        process.is_unsorted |= process.last.time > task.first.time
    process.last = task.last
    process.is_unsorted |= task.is_unsorted
    return 0


cdef int join_tasks(Trace *trace, Chunk *chunk, Buffer *processes) noexcept nogil:
    cdef Task **tasks = <Task **>chunk.tasks.data
    cdef Process *process
    cdef u32 number
    cdef size_t i
    for i in range(chunk.tasks.len / sizeof(Task *)):
        if tasks[i].assembly.state == UNSEEN:
            continue
        number = find_process(trace, tasks[i].upid)
        if number == NO_PROCESS:
            process = new_process(trace, processes, tasks[i].upid)
            if process == NULL:
                return -1
        else:
            process = &trace.processes[number]
        if join_task(process, chunk, tasks[i]) < 0:
            return -1
    return 0


cdef void join_lines(Trace *trace) noexcept nogil:
    cdef Chunk *chunk
    cdef u32 i
    trace.start = INT64_MAX
    for i in range(trace.n_chunks):
        chunk = &trace.chunks[i]
        chunk.first_line = trace.n_lines
        trace.n_lines += chunk.n_lines
        trace.start = min(trace.start, chunk.min_time)
        trace.end = max(trace.end, chunk.max_time)


# No event goes on in another file.
cdef int end_file(Trace *trace) noexcept nogil:
    cdef Process *process
    cdef u32 i
    for i in range(trace.n_processes):
        process = &trace.processes[i]
        if process.tail != NULL and finish_event(process.tail_chunk, process.tail, CUT_OFF) < 0:
            return -1
        process.tail = NULL
        if i % TAILS_A_DROP == 0:
            spill_drop_all(&trace.spill)
    return 0


cdef int join_chunks(Trace *trace, Buffer *processes) noexcept nogil:
    cdef Chunk *chunk
    cdef u32 i
    for i in range(trace.n_chunks):
        chunk = &trace.chunks[i]
        if chunk.is_first and end_file(trace) < 0:
            return -1
        if join_strays(trace, chunk) < 0 or join_tasks(trace, chunk, processes) < 0:
            return -1
        if i % CHUNKS_A_DROP == 0:
            spill_drop_all(&trace.spill)
    if end_file(trace) < 0:
        return -1
    for i in range(trace.n_chunks):
        report_merge(&trace.report, &trace.chunks[i].report, trace.chunks[i].first_line)
        free_chunk(&trace.chunks[i])
        if i % CHUNKS_A_DROP == 0:
            spill_drop_all(&trace.spill)
    return 0


cdef int join_processes(Trace *trace) noexcept nogil:
    cdef Buffer processes
    memset(&processes, 0, sizeof(processes))
    join_lines(trace)
    if join_chunks(trace, &processes) < 0:
        buffer_free(&processes)
        trace.processes = NULL
        return -1
    if trace.n_processes:
        qsort(trace.processes, trace.n_processes, sizeof(Process), compare_upids)
    return index_processes(trace, trace.n_processes)


cdef u64 count_claims(Trace *trace) noexcept nogil:
    cdef u64 n = 0
    cdef u32 i
    for i in range(trace.n_workers):
        n += trace.workers[i].claims.len / sizeof(Claim)
    return n


# The earlier of two claims to a child stays; the other costs its event.
cdef Claim *settle(Trace *trace, Claim *a, Claim *b) noexcept nogil:
    cdef Claim *loser = b if compare_events(a.event, b.event) < 0 else a
    report_add(&trace.report, SECOND_PARENT, event_line(trace, loser.event), 1)
    loser.event.kind = DEAD
    trace.processes[loser.parent].mark = HAS_DEAD
    return b if loser == a else a


cdef void put_claim(Trace *trace, Claim **slots, u64 mask, Claim *claim) noexcept nogil:
    cdef u64 at = etrace_hash64(<u64>claim.child, trace.seed) & mask
    while slots[at] != NULL and slots[at].child != claim.child:
        at = (at + 1) & mask
    slots[at] = claim if slots[at] == NULL else settle(trace, slots[at], claim)


cdef void take_parent(Trace *trace, const Claim *claim) noexcept nogil:
    cdef u32 number = find_process(trace, claim.child)
    cdef Process *child
    if number == NO_PROCESS:
        return
    child = &trace.processes[number]
    child.parent = claim.parent
    child.parent_index = claim.index
    child.fork_event = claim.event
    child.inherits = child.first != NULL and compare_events(claim.event, child.first) < 0
    child.shares_files = child.inherits and claim.flags & CLONE_FILES != 0
    child.is_thread = claim.flags & CLONE_THREAD != 0


# Of the claims that are left: the events of the others are dead.
cdef void take_parents(Trace *trace) noexcept nogil:
    cdef const Claim *claims
    cdef u32 worker
    cdef u64 i
    for worker in range(trace.n_workers):
        claims = <const Claim *>trace.workers[worker].claims.data
        for i in range(trace.workers[worker].claims.len / sizeof(Claim)):
            if claims[i].event.kind != DEAD:
                take_parent(trace, &claims[i])
            if i % CLAIMS_A_DROP == 0:
                spill_drop_all(&trace.spill)


cdef int join_parents(Trace *trace) noexcept nogil:
    cdef u64 n_slots = 64
    cdef u64 n = count_claims(trace)
    cdef Claim **slots
    cdef Claim *claims
    cdef u64 i
    cdef u32 number
    cdef u32 worker
    while n_slots < 2 * n:
        n_slots *= 2
    slots = <Claim **>calloc(n_slots, sizeof(Claim *))
    if slots == NULL:
        return -1
    for worker in range(trace.n_workers):
        claims = <Claim *>trace.workers[worker].claims.data
        for i in range(trace.workers[worker].claims.len / sizeof(Claim)):
            put_claim(trace, slots, n_slots - 1, &claims[i])
    for number in range(trace.n_processes):
        if trace.processes[number].mark == HAS_DEAD:
            drop_dead(trace, &trace.processes[number])
    free(slots)
    take_parents(trace)
    return 0


# Follows forks up to a command, then gives it to everyone on the way. A circle of forks has none.
cdef void inherit(Trace *trace, u32 number) noexcept nogil:
    cdef Program *program = NULL
    cdef u32 at = number
    cdef Process *process
    while at != NO_PROCESS:
        process = &trace.processes[at]
        if process.mark != UNKNOWN:
            program = process.inherited
            break
        process.mark = ON_PATH
        if process.parent != NO_PROCESS and process.parent_index:
            program = trace.processes[process.parent].programs[process.parent_index - 1]
            break
        at = process.parent
    at = number
    while at != NO_PROCESS and trace.processes[at].mark == ON_PATH:
        trace.processes[at].mark = KNOWN
        trace.processes[at].inherited = program
        at = trace.processes[at].parent


cdef enum:
    FEW_ARGUMENTS = 64
    MAX_COPIED = 1 << 16


# How many of its ancestor's arguments a process has at index 0. n forks of a process with n
# arguments would have n * n: once the copies of one list have MAX_COPIED, the next have a few.
cdef void limit_arguments(Process *process) noexcept nogil:
    cdef Program *program = process.inherited
    if program == NULL or not has_rows(process):
        return
    process.n_inherited_arguments = program.n_arguments
    if program.n_copied >= MAX_COPIED:
        process.n_inherited_arguments = min(program.n_arguments, <u32>FEW_ARGUMENTS)
    program.n_copied += process.n_inherited_arguments


cdef u32 group_of(Trace *trace, u32 number) noexcept nogil:
    cdef Process *processes = trace.processes
    while processes[number].group != number:
        processes[number].group = processes[processes[number].group].group
        number = processes[number].group
    return number


# Chains the members of each group, in order of upid; its number is that of its first member.
cdef void join_groups(Trace *trace) noexcept nogil:
    cdef Process *processes = trace.processes
    cdef u32 a
    cdef u32 b
    cdef u32 i
    for i in range(trace.n_processes):
        processes[i].group = i
        processes[i].next_in_group = NO_PROCESS
    for i in range(trace.n_processes):
        if processes[i].shares_files:
            a = group_of(trace, i)
            b = group_of(trace, processes[i].parent)
            processes[max(a, b)].group = min(a, b)
    for i in range(trace.n_processes):
        processes[i].group = group_of(trace, i)
    for i in range(trace.n_processes, 0, -1):
        a = processes[i - 1].group
        if a != i - 1:
            processes[i - 1].next_in_group = processes[a].next_in_group
            processes[a].next_in_group = i - 1


cdef int number_executions(Trace *trace) noexcept nogil:
    cdef u64 n = 0
    cdef u32 i
    for i in range(trace.n_processes):
        trace.processes[i].first_execution = <u32>n
        if has_rows(&trace.processes[i]):
            n += <u64>trace.processes[i].n_programs + 1
    if n > ceilings[EXECUTIONS]:
        return pass_limit(EXECUTIONS)
    trace.n_executions = <u32>n
    return 0


cdef int join_families(Trace *trace) noexcept nogil:
    cdef u32 i
    for i in range(trace.n_processes):
        trace.processes[i].parent = NO_PROCESS
        trace.processes[i].mark = UNKNOWN
    if join_parents(trace) < 0 or number_executions(trace) < 0:
        return -1
    for i in range(trace.n_processes):
        trace.processes[i].mark = UNKNOWN
    for i in range(trace.n_processes):
        inherit(trace, i)
        limit_arguments(&trace.processes[i])
        if i % PROCESSES_A_DROP == 0:
            spill_drop_all(&trace.spill)
    join_groups(trace)
    return 0


# ---- paths ----


cdef extern from "<sys/stat.h>" nogil:
    enum: S_IFMT
    ctypedef struct stat_result "struct stat":
        unsigned int st_mode
        long long st_size
    int lstat(const char *path, stat_result *result)

cdef enum:
    STEP = 64  # paths taken at a time


cdef struct Sorted:
    const Name *name
    u32 number  # of the name


cdef int compare_names(const void *a, const void *b) noexcept nogil:
    cdef const Name *x = (<const Sorted *>a).name
    cdef const Name *y = (<const Sorted *>b).name
    cdef int order = memcmp(x.bytes, y.bytes, min(x.len, y.len))
    return order if order else (x.len > y.len) - (x.len < y.len)


# Gives the names of every thread a number among those of the first one.
cdef int join_names(Trace *trace) noexcept nogil:
    cdef Worker *first = &trace.workers[0]
    cdef Worker *worker
    cdef Name *name
    cdef u32 w
    cdef u32 i
    for w in range(trace.n_workers):
        worker = &trace.workers[w]
        worker.ranks = <u32 *>malloc((<size_t>worker.names.n + 1) * sizeof(u32))
        if worker.ranks == NULL:
            return -1
        for i in range(worker.names.n if w else 0):
            name = &worker.names.all[i]
            worker.ranks[i] = names_intern(&first.names, name.bytes, name.len)
            if worker.ranks[i] == NO_NAME:
                return -1
            if name.wants_stat:
                first.names.all[worker.ranks[i]].wants_stat = True
    return 0


# The numbers of the names in order of bytes; NULL when there is no memory.
cdef u32 *order_names(const Names *names) noexcept nogil:
    cdef Sorted *sorted_names = <Sorted *>malloc((<size_t>names.n + 1) * sizeof(Sorted))
    cdef u32 *order = <u32 *>malloc((<size_t>names.n + 1) * sizeof(u32))
    cdef u32 i
    if sorted_names == NULL or order == NULL:
        free(sorted_names)
        free(order)
        return NULL
    for i in range(names.n):
        sorted_names[i].name = &names.all[i]
        sorted_names[i].number = i
    if names.n:
        qsort(sorted_names, names.n, sizeof(Sorted), compare_names)
    for i in range(names.n):
        order[i] = sorted_names[i].number
    free(sorted_names)
    return order


# The same after renamed directories have moved what is below them.
cdef u32 *order_all(Trace *trace) noexcept nogil:
    cdef const Names *names = &trace.workers[0].names
    cdef u32 n = names.n
    cdef u32 *order = order_names(names)
    if order == NULL or find_moved(trace, order) < 0:
        free(order)
        return NULL
    if names.n == n:
        return order
    free(order)
    return order_names(names)


# Fills the paths; returns the rank of each name, NULL without memory.
cdef u32 *rank_names(Trace *trace) noexcept nogil:
    cdef const Names *names = &trace.workers[0].names
    cdef u32 *order = order_all(trace)
    cdef u32 *ranks = NULL
    cdef u32 i
    trace.n_paths = names.n
    trace.paths = <Path *>calloc(<size_t>names.n + 1, sizeof(Path))
    if order != NULL and trace.paths != NULL:
        ranks = <u32 *>malloc((<size_t>names.n + 1) * sizeof(u32))
    for i in range(names.n if ranks != NULL else 0):
        ranks[order[i]] = i
        trace.paths[i].bytes = names.all[order[i]].bytes
        trace.paths[i].len = names.all[order[i]].len
        trace.paths[i].wants_stat = names.all[order[i]].wants_stat
    free(order)
    return ranks


cdef void rank_moved(Trace *trace, const u32 *ranks) noexcept nogil:
    cdef Moved *moved = <Moved *>trace.moved.data
    cdef u64 i
    for i in range(trace.moved.len / sizeof(Moved)):
        moved[i].old = ranks[moved[i].old]
        moved[i].new = ranks[moved[i].new]


cdef int make_uses(Trace *trace) noexcept nogil:
    cdef int i
    for i in range(N_USES):
        trace.uses[i] = <u8 *>calloc(<size_t>trace.n_paths + 1, 1)
        if trace.uses[i] == NULL:
            return -1
    return 0


# The empty string is a path, too. Names are compared in blocks, so bytes follow it.
cdef u32 intern_empty(Worker *worker) noexcept nogil:
    cdef char[ETRACE_PAD] padded
    memset(padded, 0, ETRACE_PAD)
    return names_intern(&worker.names, padded, 0)


cdef int join_paths(Trace *trace) noexcept nogil:
    cdef Worker *first = &trace.workers[0]
    cdef u32 empty = intern_empty(first)
    cdef u32 *ranks
    cdef u32 w
    cdef u32 i
    if empty == NO_NAME or join_mounts(trace) < 0 or join_names(trace) < 0:
        return -1
    ranks = rank_names(trace)
    if ranks == NULL:
        return -1
    rank_moved(trace, ranks)
    for w in range(1, trace.n_workers):
        for i in range(trace.workers[w].names.n):
            trace.workers[w].ranks[i] = ranks[trace.workers[w].ranks[i]]
    free(first.ranks)
    first.ranks = ranks
    trace.empty = ranks[empty]
    return make_uses(trace)


# The system cannot be asked for a path with a null byte inside, or for a pipe.
cdef void look_up(Path *path) noexcept nogil:
    cdef stat_result result
    if path.bytes[0] != c"/" or memchr(path.bytes, 0, path.len) != NULL:
        return
    if lstat(path.bytes, &result) < 0:
        return
    path.mode = EXISTS | (result.st_mode & S_IFMT) >> TYPE_SHIFT
    path.size = result.st_size


cdef int prepare_paths(Trace *trace) noexcept nogil:
    cdef u64 i
    cdef u64 end
    while not trace.load.cancelled and not trace.no_stat:
        i = etrace_take(&trace.load.taken) * STEP
        if i >= trace.n_paths:
            break
        end = min(i + STEP, <u64>trace.n_paths)
        for i in range(i, end):
            if trace.paths[i].wants_stat:
                look_up(&trace.paths[i])
    return 0
