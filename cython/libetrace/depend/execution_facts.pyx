# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Executions: which rows are threads, what all took, which shell wraps each.

This is the one place that says what counts as a process. A thread has a upid of its own. What it does
before it executes a program belongs to the execution that cloned it with CLONE_THREAD, and so do the
processes that it starts. Row numbers are checked here, rings of parents in a damaged image are cut.
"""
from collections import namedtuple

from cpython cimport array

from libetrace.core.types cimport INT64_MAX, s16, s32, s64, u8, u32, u64
from libetrace.image.columns cimport Columns

cdef enum:
    CLONE_THREAD = 0x10000  # clone(2)
    NONE = -1


cdef void find_cloners(Columns c, s32 *owner) noexcept nogil:
    cdef const u64 *start = c.executions_children_start.at
    cdef const s32 *child = c.children_execution.at
    cdef const u64 *flags = c.children_flags.at
    cdef const s32 *index = c.executions_index.at
    cdef u64 n = c.executions_upid.n
    cdef u64 n_children = c.children_execution.n
    cdef u64 i, at
    for i in range(n):
        owner[i] = <s32>i
    for i in range(n):
        for at in range(start[i], min(start[i + 1], n_children)):
            if flags[at] & CLONE_THREAD and 0 <= child[at] < <s64>n and index[child[at]] == 0:
                owner[child[at]] = <s32>i


# The end of the chain of cloners from `row`; in a ring the row that was met again.
cdef s32 last_cloner(const s32 *owner, u8 *is_met, s32 row) noexcept nogil:
    while owner[row] != row and not is_met[row]:
        is_met[row] = 1
        row = owner[row]
    return row


cdef void find_owners(Columns c, s32 *owner, u8 *is_met) noexcept nogil:
    cdef u64 i
    cdef s32 row, end, above
    find_cloners(c, owner)
    for i in range(c.executions_upid.n):
        end = last_cloner(owner, is_met, <s32>i)
        row = <s32>i
        while is_met[row]:
            is_met[row] = 0
            above = owner[row]
            owner[row] = end
            row = above


cdef inline array.array new_rows(Columns columns):
    return array.clone(array.array("i"), <Py_ssize_t>columns.executions_upid.n, zero=False)


cdef array.array owners_of(Columns columns):
    cdef u64 n = columns.executions_upid.n
    cdef array.array owner = new_rows(columns)
    cdef bytearray is_met = bytearray(n)
    cdef u8 *met = <u8 *><char *>is_met
    with nogil:
        find_owners(columns, <s32 *>owner.data.as_ints, met)
    return owner


cdef void mark_parents(Columns c, const s32 *owner, u8 *is_parent) noexcept nogil:
    cdef const u64 *start = c.executions_children_start.at
    cdef const s32 *child = c.children_execution.at
    cdef const u64 *flags = c.children_flags.at
    cdef u64 n_children = c.children_execution.n
    cdef u64 i, at
    for i in range(c.executions_upid.n):
        for at in range(start[i], min(start[i + 1], n_children)):
            if not flags[at] & CLONE_THREAD:
                is_parent[owner[i]] = 1
                break


# One byte for each execution: it or a thread of it started a process.
cdef bytearray parents_of(Columns columns, array.array owner):
    cdef bytearray found = bytearray(len(owner))
    cdef u8 *is_parent = <u8 *><char *>found
    with nogil:
        mark_parents(columns, <s32 *>owner.data.as_ints, is_parent)
    return found


cdef u64 count_upids(Columns c, const s32 *owner) noexcept nogil:
    cdef const s64 *upid = c.executions_upid.at
    cdef u64 found = 0
    cdef u64 i
    for i in range(c.executions_upid.n):
        found += (i == 0 or upid[i] != upid[i - 1]) and owner[i] == <s32>i
    return found


def find_thread_owners(image):
    """Return for each execution which one it belongs to: (n_executions,) int32.

    That is itself, or for the begin of a thread the execution of the process that cloned it.
    """
    return owners_of(Columns(image, is_checked=False))


def find_parents(image):
    """Return for each execution whether it or a thread of it started a process: one byte each."""
    cdef Columns columns = Columns(image, is_checked=False)
    return bytes(parents_of(columns, owners_of(columns)))


def count_processes(image):
    """Return the number of processes; threads have upids too, but do not count."""
    cdef Columns columns = Columns(image, is_checked=False)
    cdef array.array owner = new_rows(columns)
    find_cloners(columns, <s32 *>owner.data.as_ints)
    return count_upids(columns, <s32 *>owner.data.as_ints)


# ---- totals ----
# The executions of an image in figures: one pass over their columns, no Python object for each.
#
# Row numbers of binaries are checked here; the rest is only counted.


Totals = namedtuple("Totals", "elapsed_ns n_commands n_failed cpu_ns slowest programs")

# What the commands took that ran one binary.
cdef struct Program:
    u64 n
    s64 elapsed
    s64 work
    s64 cpu  # of those of which it is known


cdef inline s64 sum_of(s64 a, s64 b) noexcept nogil:
    if a > 0 and b > INT64_MAX - a:
        return INT64_MAX
    return a + b


cdef bint has_cpu(Columns c, u64 row) noexcept nogil:
    cdef const s64 *user = c.usage_user_ns.at
    return user != NULL and user[row] >= 0 and c.usage_system_ns.at[row] >= 0


# What an execution did itself: its CPU time where that is known, else its time without that in which
# the writers ran that it read from by a pipe.
cdef s64 work_of(Columns c, const s64 *waited, u64 row) noexcept nogil:
    cdef s64 elapsed = c.executions_elapsed_ns.at[row]
    if has_cpu(c, row):
        return sum_of(c.usage_user_ns.at[row], c.usage_system_ns.at[row])
    return elapsed - min(elapsed, waited[row])


cdef bint has_reader(const u32 *reader, u64 low, u64 high, u32 wanted) noexcept nogil:
    cdef u64 middle
    cdef u64 end = high
    while low < high:
        middle = low + (high - low) / 2
        if reader[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < end and reader[low] == wanted


# Of each execution how long it ran beside those of the same parent that wrote to its pipes. Two that
# read and write one pipe share it with others, as those of a jobserver do: they do not wait.
cdef void find_waits(Columns c, s64 *waited) noexcept nogil:
    cdef const s64 *start = c.executions_start_ns.at
    cdef const s64 *elapsed = c.executions_elapsed_ns.at
    cdef const s32 *parent = c.executions_parent.at
    cdef const u64 *readers = c.executions_readers_start.at
    cdef const u32 *reader = c.pipe_readers_execution.at
    cdef u64 n = c.executions_upid.n
    cdef u64 n_readers = c.pipe_readers_execution.n
    cdef u64 i, at
    cdef s32 row
    for i in range(n):
        for at in range(readers[i], min(readers[i + 1], n_readers)):
            row = reader[at]
            if not 0 <= row < <s64>n or parent[row] != parent[i] or parent[row] == NONE:
                continue
            if has_reader(reader, min(readers[row], n_readers), min(readers[row + 1], n_readers),
                          <u32>i):
                continue
            waited[row] = max(waited[row], sum_of(start[i], elapsed[i]) - start[row])


# Rows of the longest so far, longest first; equal ones in the order of rows.
cdef u64 keep_longest(u64 *rows, u64 n, u64 most, const s64 *work, u64 row) noexcept nogil:
    cdef u64 at = n
    if n == most:
        if not most or work[rows[n - 1]] >= work[row]:
            return n
        at = n - 1
    else:
        n += 1
    while at and work[rows[at - 1]] < work[row]:
        rows[at] = rows[at - 1]
        at -= 1
    rows[at] = row
    return n


cdef s64 first_start(Columns c) noexcept nogil:
    cdef const s64 *start = c.executions_start_ns.at
    cdef s64 first = INT64_MAX
    cdef u64 i
    for i in range(c.executions_upid.n):
        first = min(first, max(0, start[i]))
    return first


cdef s64 last_end(Columns c) noexcept nogil:
    cdef const s64 *start = c.executions_start_ns.at
    cdef const s64 *elapsed = c.executions_elapsed_ns.at
    cdef s64 last = 0
    cdef u64 i
    for i in range(c.executions_upid.n):
        last = max(last, sum_of(start[i], elapsed[i]))
    return last


# CPU time of all executions of which it is known, NONE when it is known of none.
cdef s64 total_cpu(Columns c) noexcept nogil:
    cdef const s64 *user = c.usage_user_ns.at
    cdef const s64 *system = c.usage_system_ns.at
    cdef s64 found = NONE
    cdef u64 i
    if user == NULL:
        return NONE
    for i in range(c.executions_upid.n):
        if user[i] >= 0 and system[i] >= 0:
            found = sum_of(max(0, found), sum_of(user[i], system[i]))
    return found


# Totals of those that started no other: of each program, and the `most` that worked longest.
cdef struct Leaves:
    const char *is_parent
    s64 *work  # of each execution; how long it waited, before total()
    Program *programs
    u64 *rows
    u64 n_rows
    u64 most


cdef void add_leaf(Columns c, Leaves *leaves, u64 row) noexcept nogil:
    cdef u64 program = <u64>(c.executions_binary.at[row] + 1)
    if program > c.paths_string.n:  # 0 for NONE, and for what is not a path
        program = 0
    leaves.programs[program].n += 1
    leaves.programs[program].elapsed = sum_of(leaves.programs[program].elapsed,
                                              c.executions_elapsed_ns.at[row])
    leaves.programs[program].work = sum_of(leaves.programs[program].work, leaves.work[row])
    if has_cpu(c, row):
        leaves.programs[program].cpu = sum_of(leaves.programs[program].cpu, leaves.work[row])


# (commands, failed ones).
cdef (u64, u64) total(Columns c, Leaves *leaves) noexcept nogil:
    cdef const s32 *binary = c.executions_binary.at
    cdef const s16 *status = c.executions_status.at
    cdef u64 n_commands = 0
    cdef u64 n_failed = 0
    cdef u64 i
    for i in range(c.executions_upid.n):
        if binary[i] == NONE:
            continue
        n_commands += 1
        n_failed += status[i] != 0 and status[i] != NONE
        # the time of what started others is mostly theirs; its CPU time is its own
        if leaves.is_parent[i] and not has_cpu(c, i):
            continue
        leaves.work[i] = work_of(c, leaves.work, i)
        leaves.n_rows = keep_longest(leaves.rows, leaves.n_rows, leaves.most, leaves.work, i)
        if not leaves.is_parent[i]:
            add_leaf(c, leaves, i)
    return n_commands, n_failed


def total_executions(image, u32 n_slowest):
    """Return the Totals of an image: all of it, and of executions that ran a program (commands).

    `elapsed_ns` is from the first start to the last end. `cpu_ns` is of all executions, -1 when it is
    known of none. `n_failed` ended with a status other than 0. `slowest` has the rows of those that
    worked longest: work is CPU time where that is known, else time, only of those that started no
    process. `programs` has, of those that started none, how many there were of each binary, what
    they took, how long they worked and their CPU time, as far as it is known:
    [(row of `paths` or NONE, number, ns, ns, ns)].
    """
    cdef Columns columns = Columns(image, is_checked=False)
    cdef bytearray is_parent = parents_of(columns, owners_of(columns))
    cdef u64 n = columns.executions_upid.n
    cdef u64 n_paths = columns.paths_string.n
    cdef Leaves leaves
    cdef bytearray programs = bytearray((n_paths + 1) * sizeof(Program))
    cdef bytearray rows = bytearray(<u64>n_slowest * sizeof(u64))
    cdef bytearray work = bytearray(n * sizeof(s64))
    cdef u64 n_commands, n_failed
    cdef s64 elapsed, cpu
    cdef u64 i
    leaves.is_parent = is_parent
    leaves.programs = <Program *><char *>programs
    leaves.rows = <u64 *><char *>rows
    leaves.work = <s64 *><char *>work
    leaves.n_rows = 0
    leaves.most = n_slowest
    with nogil:
        elapsed = max(0, last_end(columns) - first_start(columns)) if n else 0
        cpu = total_cpu(columns)
        find_waits(columns, leaves.work)
        n_commands, n_failed = total(columns, &leaves)
    ran = []
    for i in range(n_paths + 1):
        if leaves.programs[i].n:
            ran.append((<s64>i - 1, leaves.programs[i].n, leaves.programs[i].elapsed,
                        leaves.programs[i].work, leaves.programs[i].cpu))
    return Totals(elapsed, n_commands, n_failed, cpu, [leaves.rows[i] for i in range(leaves.n_rows)], ran)


# ---- wrapping shells ----
# Executions and which of them are shells -> the shell that wraps each of them.
#
# The rule is in docs/postprocess.md; one pass over the rows, each process is looked at once.


cdef enum:
    UNKNOWN = -2
    ASKED = -3  # on the way up from it: met again, the parents form a ring


cdef struct Forest:
    Py_ssize_t n
    const s32 *parent
    const s32 *binary
    const u8 *is_shell
    s32 *first  # first row of each row's process
    s32 *last   # last row of the process of each first row
    s32 *shell  # row of the latest shell in each row's process up to it, or NONE
    s32 *waiting


# Fill `first`, `last` and `shell`: rows of one process lie together.
cdef void init_processes(Forest *forest, const s64 *upid) noexcept nogil:
    cdef Py_ssize_t row
    for row in range(forest.n):
        if row and upid[row] == upid[row - 1]:
            forest.first[row] = forest.first[row - 1]
            forest.shell[row] = forest.shell[row - 1]
        else:
            forest.first[row] = <s32>row
            forest.shell[row] = NONE
        forest.last[forest.first[row]] = <s32>row
        if forest.is_shell[row]:
            forest.shell[row] = <s32>row


# Whether the process executes the very shell that `shell` is: then it wraps its own.
cdef bint runs_the_same(const Forest *forest, s32 process, s32 shell) noexcept nogil:
    cdef s32 row
    for row in range(process, forest.last[process] + 1):
        if forest.is_shell[row] and forest.binary[row] == forest.binary[shell]:
            return True
    return False


# The answer for a process when it needs no other's: UNKNOWN when it is that of its parent process.
cdef s32 wrapper_at_hand(const Forest *forest, s32 process, const s32 *out) noexcept nogil:
    cdef s32 parent = forest.parent[process]
    cdef s32 shell
    if parent == NONE or forest.first[parent] == process:
        return NONE
    shell = forest.shell[parent]
    if shell == NONE:
        shell = out[forest.first[parent]]
        if shell == ASKED:
            return NONE
    if shell >= 0 and runs_the_same(forest, process, shell):
        return NONE
    return shell


# Answer for one process: up to the first ancestor whose answer is at hand, then down again.
cdef void resolve(const Forest *forest, s32 process, s32 *out) noexcept nogil:
    cdef Py_ssize_t n_waiting = 0
    cdef s32 wrapper
    while True:
        wrapper = wrapper_at_hand(forest, process, out)
        if wrapper != UNKNOWN:
            out[process] = wrapper
            if n_waiting == 0:
                return
            n_waiting -= 1
            process = forest.waiting[n_waiting]
            continue
        out[process] = ASKED
        forest.waiting[n_waiting] = process
        n_waiting += 1
        process = forest.first[forest.parent[process]]


cdef void map_all(Forest *forest, const s64 *upid, s32 *out) noexcept nogil:
    cdef Py_ssize_t row
    init_processes(forest, upid)
    for row in range(forest.n):
        out[row] = UNKNOWN
    for row in range(forest.n):
        if forest.first[row] != row:
            out[row] = out[forest.first[row]]
        elif out[row] == UNKNOWN:
            resolve(forest, <s32>row, out)


cdef int check_rows(const s32[::1] rows, Py_ssize_t n) except -1:
    cdef Py_ssize_t i
    for i in range(rows.shape[0]):
        if rows[i] < NONE or rows[i] >= n:
            raise ValueError(f"row {i}: parent {rows[i]} of {n} executions")
    return 0


def wrapping_shells(
    const s64[::1] upid, const s32[::1] parent, const s32[::1] binary, const u8[::1] is_shell,
    s32[::1] out,
):
    """Write the row of the wrapping shell of each execution to `out`, -1 where there is none.

    All (n_executions,), rows of one upid together; `is_shell` is 0 or 1. ValueError when lengths
    differ or a parent is not a row; MemoryError.
    """
    cdef Py_ssize_t n = upid.shape[0]
    cdef Forest forest
    cdef bytearray memory = bytearray(4 * n * sizeof(s32))
    if not (n == parent.shape[0] == binary.shape[0] == is_shell.shape[0] == out.shape[0]):
        raise ValueError("columns of different lengths")
    check_rows(parent, n)
    if n == 0:
        return
    forest.n = n
    forest.parent = &parent[0]
    forest.binary = &binary[0]
    forest.is_shell = &is_shell[0]
    forest.first = <s32 *><char *>memory
    forest.last = forest.first + n
    forest.shell = forest.last + n
    forest.waiting = forest.shell + n
    with nogil:
        map_all(&forest, &upid[0], &out[0])
