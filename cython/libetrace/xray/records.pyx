# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The bytes of one Flight Data Recorder record, and the problems of a log in a bounded list.

Layouts: LLVM's description (version 1) and LLVM's writers of versions 2 to 5, see docs/xray.md. Unused
bytes of a record are what the writer's stack held: they are never looked at.

A bad record is skipped when four sound records follow it; otherwise the rest of its buffer is.
"""
from libc.string cimport memset

from libetrace.core.memory cimport buffer_add, buffer_free


#: by number; a reader shows them with words of its own
NAMES = (
    "unknown-kind", "unknown-action", "negative-size", "record-cut-off", "garbage", "junk-between",
    "buffer-cut-off", "no-new-buffer", "no-end-of-buffer", "empty-preamble", "unknown-record-type",
    "stray-argument", "trailing-bytes", "buffer-too-long", "no-buffer-size",
    "buffer-too-short", "buffer-inside", "no-extents", "stray-preamble",
)


cdef void problem_add(Problems *problems, int kind, u64 offset, u64 skipped_bytes, u32 number) noexcept nogil:
    cdef Problem problem
    problem.offset = offset
    problem.skipped_bytes = skipped_bytes
    problem.kind = kind
    problem.number = number
    problems.n_problems += 1
    problems.n_skipped_bytes += skipped_bytes
    if problems.kept.len < MAX_PROBLEMS * sizeof(Problem):
        buffer_add(&problems.kept, &problem, sizeof(problem))  # without memory it is only counted


cdef void problems_free(Problems *problems) noexcept nogil:
    buffer_free(&problems.kept)


cdef list problems_list(const Problems *problems):
    """Return (name, offset, skipped bytes, number) of those that were kept, by offset."""
    cdef size_t i
    cdef const Problem *at = <const Problem *>problems.kept.data
    found = [
        (NAMES[at[i].kind], at[i].offset, at[i].skipped_bytes, at[i].number)
        for i in range(problems.kept.len // sizeof(Problem))
    ]
    return sorted(found, key=lambda problem: problem[1])


# ---- records ----


cdef enum:
    SOUND_RECORDS = 4


cdef bint _is_known(int version, u8 kind) noexcept nogil:
    if kind == END_OF_BUFFER:
        return version == 1
    if kind == BUFFER_EXTENTS:
        return version >= 2
    if kind == TYPED_EVENT or kind == PID:
        return version >= 3
    return kind < TYPED_EVENT


cdef void _read_function(const Header *header, const u8 *at, Record *record) noexcept nogil:
    cdef u32 word = load32(at, header.is_big)
    record.n_bytes = FUNCTION_BYTES
    if header.is_big:
        record.action = word >> 28 & 7
        record.function = word & 0x0fffffff
    else:
        record.action = word >> 1 & 7
        record.function = word >> 4
    record.tsc = load32(at + 4, header.is_big)
    record.what = FUNCTION if record.action <= ENTER_ARGS else BAD_ACTION


cdef void _read_event(const Header *header, const u8 *at, const u8 *end, Record *record) noexcept nogil:
    cdef bint is_big = header.is_big
    cdef s32 size = <s32>load32(at + 1, is_big)
    if size < 0:
        record.what = BAD_EVENT_SIZE
        return
    if header.version >= 5:
        record.is_delta = True
        record.tsc = <u64><s64><s32>load32(at + 5, is_big)
        record.number = load16(at + 9, is_big)
    else:
        record.tsc = load64(at + 5, is_big)
        record.number = load16(at + 13, is_big)
    record.payload_bytes = <u64>size
    if size > end - at - METADATA_BYTES:
        record.what = CUT_OFF
        return
    record.n_bytes = METADATA_BYTES + <u32>size


cdef void _read_metadata(const Header *header, const u8 *at, const u8 *end, Record *record) noexcept nogil:
    cdef bint is_big = header.is_big
    cdef u8 kind = metadata_kind(at[0], is_big)
    record.n_bytes = METADATA_BYTES
    if not _is_known(header.version, kind):
        record.what = BAD_KIND
        record.number = kind
        return
    record.what = kind
    if kind == NEW_BUFFER:
        # the description has 16 bits, every released writer 32, little endian
        record.id = load16(at + 1, True) if is_big else <s32>load32(at + 1, False)
    elif kind == PID:
        record.id = <s32>load32(at + 1, is_big)
    elif kind == NEW_CPU_ID:
        record.number = load16(at + 1, is_big)
        record.tsc = load64(at + 3, is_big)
    elif kind == WALL_TIME:
        record.tsc = load64(at + 1, is_big)
        record.id = <s32>load32(at + 9, is_big)
    elif kind == CUSTOM_EVENT or kind == TYPED_EVENT:
        _read_event(header, at, end, record)
    elif kind != END_OF_BUFFER:
        record.tsc = load64(at + 1, is_big)  # TSC_WRAP, CALL_ARGUMENT, BUFFER_EXTENTS


cdef void record_read(const Header *header, const u8 *at, const u8 *end, Record *record) noexcept nogil:
    cdef bint is_function
    memset(record, 0, sizeof(record[0]))
    if end <= at:
        record.what = CUT_OFF
        return
    is_function = not is_metadata(at[0], header.is_big)
    if end - at < (FUNCTION_BYTES if is_function else METADATA_BYTES):
        record.what = CUT_OFF
        record.n_bytes = <u32>(end - at)
    elif is_function:
        _read_function(header, at, record)
    else:
        _read_metadata(header, at, end, record)


cdef bint goes_on(const Header *header, const u8 *data, u64 at, u64 end) noexcept nogil:
    cdef Record record
    cdef int i
    for i in range(SOUND_RECORDS):
        if at == end:
            return True
        record_read(header, data + at, data + end, &record)
        if record.what > FUNCTION or record.what == BUFFER_EXTENTS:
            return False
        at += record.n_bytes
    return True


cdef u64 bad_bytes(const Header *header, const u8 *data, u64 at, u64 end, const Record *record) noexcept nogil:
    cdef bint is_whole = record.what == BAD_KIND or record.what == BAD_ACTION or record.what == BUFFER_EXTENTS
    if is_whole and goes_on(header, data, at + record.n_bytes, end):
        return record.n_bytes
    return end - at
