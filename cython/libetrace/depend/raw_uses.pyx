# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Columns of an image -> uses of files: opens, inherited descriptors, programs, symbolic links.

What one execution used several times by the same name is one open: it lasts from its first begin to
its last end, and to the end of the execution when the trace does not tell (a foreign parser's). An
inherited file is used as long as its execution runs.
"""
from libetrace.core.types cimport INT64_MAX
from libetrace.depend.uses cimport INHERITED, LINK, READS, WRITES

cdef enum:
    ACCESS = 3
    BEGUN = 6  # kind of a change
    TYPE_BITS = 0x7c
    BLOCK = 0x58  # modes of files that exist
    REGULAR = 0x60


cdef inline u8 access_of(u8 mode) noexcept nogil:
    cdef u8 access = mode & ACCESS
    if access == 0:
        return READS
    return WRITES if access == 1 else READS | WRITES


cdef inline s64 sum_of(s64 a, s64 b) noexcept nogil:
    a = max(a, 0)
    b = max(b, 0)
    return a + b if a <= INT64_MAX - b else INT64_MAX


cdef inline s64 start_of(const ExecutionColumns *executions, u32 row) noexcept nogil:
    return sum_of(executions.first, executions.start[row])


cdef inline s64 end_of(const ExecutionColumns *executions, u32 row) noexcept nogil:
    return sum_of(start_of(executions, row), executions.elapsed[row])


# Opens have stamps of the clock, executions count from the first one: the smallest difference is
# the first stamp, or a little later when no execution began with an open.
cdef s64 first_stamp(const ExecutionColumns *executions, const OpenColumns *opens) noexcept nogil:
    cdef s64 smallest = INT64_MAX
    cdef s64 start
    cdef u64 i
    for i in range(opens.n):
        start = executions.start[opens.execution[i]]
        if opens.begin[i] > 0 and start >= 0:
            smallest = min(smallest, opens.begin[i] - start)
    return max(smallest, 0) if smallest != INT64_MAX else 0


cdef inline bint is_device(const Devices *devices, u32 path) noexcept nogil:
    if not devices.first <= path < devices.end:
        return False
    if devices.first_shared <= path < devices.end_shared:
        return False
    return devices.modes[path] & TYPE_BITS not in (BLOCK, REGULAR)


cdef void take_first_uses(const ChangeColumns *changes, RawUse *raw) noexcept nogil:
    cdef RawUse *use
    cdef u64 i
    for i in range(changes.n):
        use = raw + changes.open[i]
        if changes.kind[i] == BEGUN and changes.time[i] >= 0:
            use.begin = min(use.begin, changes.time[i])


# `raw` is empty: row i of `opens` is use i.
cdef u64 take_opens(const OpenColumns *opens, const ChangeColumns *changes,
                    const Devices *devices, const ExecutionColumns *executions, RawUse *raw,
                    u64 n) noexcept nogil:
    cdef RawUse *use
    cdef u64 i
    for i in range(opens.n):
        use = raw + n + i
        use.path = opens.path[i]
        use.execution = opens.execution[i]
        use.row = <u32>(n + i)
        use.access = access_of(opens.mode[i])
        if is_device(devices, use.path):
            use.access &= ~<u8>WRITES
        use.begin = max(opens.begin[i], 0)
        use.end = max(opens.end[i], use.begin)
        if opens.until[i] >= 0:
            use.end = max(opens.until[i], use.end)
        else:
            use.end = max(end_of(executions, use.execution), use.end)
    take_first_uses(changes, raw)
    return n + opens.n


cdef u64 take_inherited(const InheritedColumns *files, const ExecutionColumns *executions,
                        RawUse *raw, u64 n) noexcept nogil:
    cdef RawUse *use
    cdef u64 i
    for i in range(files.n):
        use = raw + n + i
        use.path = files.path[i]
        use.execution = files.execution[i]
        use.row = <u32>(n + i)
        use.access = access_of(files.mode[i]) | INHERITED
        use.begin = start_of(executions, use.execution)
        use.end = end_of(executions, use.execution)
    return n + files.n


cdef u64 take_programs(const ExecutionColumns *executions, bint all_programs, u8 *is_written,
                       RawUse *raw, u64 n) noexcept nogil:
    cdef u64 first_row = n
    cdef RawUse *use
    cdef u64 i
    cdef u32 row
    for i in range(n):
        if raw[i].access & WRITES:
            is_written[raw[i].path] = True
    for row in range(executions.n):
        if executions.binary[row] < 0 or not (all_programs or is_written[executions.binary[row]]):
            continue
        use = raw + n
        use.path = <u32>executions.binary[row]
        use.execution = row
        use.row = <u32>(first_row + row)
        use.access = READS
        use.begin = use.end = start_of(executions, row)
        n += 1
    return n


cdef s64 last_end(const RawUse *raw, u64 n) noexcept nogil:
    cdef s64 last = 0
    cdef u64 i
    for i in range(n):
        last = max(last, raw[i].end)
    return last


cdef u64 take_links(const LinkColumns *links, u32 first_row, RawUse *raw, u64 n) noexcept nogil:
    cdef s64 last = last_end(raw, n) if links.n else 0
    cdef RawUse *use
    cdef u64 i
    for i in range(links.n):
        use = raw + n + 2 * i
        use[0].path = links.path[i]
        use[1].path = links.target[i]
        use[0].execution = use[1].execution = links.execution[i]
        use[0].row = first_row + 2 * <u32>i
        use[1].row = use[0].row + 1
        use[0].access = WRITES | LINK
        use[1].access = READS | LINK
        use[0].begin = use[0].end = use[1].begin = max(links.time[i], 0)
        use[1].end = max(last, use[1].begin)
    return n + 2 * links.n
