# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Verifier: the grammar of a Flight Data Recorder log as one table of transitions.

Version 1, as LLVM describes it: ThreadBuffer := NewBuffer WallClockTime NewCPUId BodySequence* EndOfBuffer. From
version 2 on BufferExtents comes first and nothing ends a buffer, from 3 on Pid comes after the time.
"""
from libc.string cimport memset

from libetrace.core.types cimport u8, u32, u64
from libetrace.xray.framing cimport Block, Frames
from libetrace.xray.records cimport (
    BUFFER_EXTENTS, CALL_ARGUMENT, CUSTOM_EVENT, END_OF_BUFFER, FUNCTION, METADATA_BYTES, NEW_BUFFER, NEW_CPU_ID, PID,
    TSC_WRAP, TYPED_EVENT, WALL_TIME, Header, Record, bad_bytes, load64, problems_list, record_read,
)
from libetrace.xray.decoder cimport read_header
from libetrace.xray.decoder import LogError

#: of records by number, then what is in the place of one
WHATS = (
    "NewBuffer", "EndOfBuffer", "NewCPUId", "TSCWrap", "WallTime", "CustomEvent", "CallArgument",
    "BufferExtents", "TypedEvent", "Pid", "Function", "an unknown kind of metadata", "an unknown action",
    "an event of negative size", "a record that is cut off",
)

# The state is the kind of the last record; functions differ by whether arguments may follow.
cdef enum:
    START = 15
    CALL_WITH_ARGUMENTS = 16
    N_STATES = 17

BODY = (1 << NEW_CPU_ID | 1 << TSC_WRAP | 1 << FUNCTION | 1 << CUSTOM_EVENT | 1 << TYPED_EVENT
        | 1 << END_OF_BUFFER)
#: state -> what may come next
TRANSITIONS = {
    START: 1 << NEW_BUFFER,
    NEW_BUFFER: 1 << WALL_TIME,
    WALL_TIME: 1 << PID | 1 << NEW_CPU_ID,
    PID: 1 << NEW_CPU_ID,
    NEW_CPU_ID: BODY,
    TSC_WRAP: BODY,
    CUSTOM_EVENT: BODY,
    TYPED_EVENT: BODY,
    FUNCTION: BODY,
    CALL_WITH_ARGUMENTS: BODY | 1 << CALL_ARGUMENT,
}
#: of what frames the buffers, in words
FRAME_PROBLEMS = {
    "junk-between": "bytes between buffers",
    "buffer-cut-off": "a buffer that is longer than the file",
    "buffer-too-long": "a buffer that is shorter than its length",
}
NAMES = {START: "the start of a buffer", CALL_WITH_ARGUMENTS: "Function with arguments"}


cdef struct Violation:
    u64 offset
    int before
    int what


cdef Frames _find_frames(const u8[::1] data, bint salvages):
    cdef Frames frames = Frames()
    read_header(data, &frames.header)
    if frames.header.type == 0:
        raise LogError("a log of basic mode has no buffers and no grammar: `convert` shows its records")
    frames.find(data, salvages)
    return frames


cdef int _next_state(const Header *header, int state, const Record *record) noexcept nogil:
    if record.what == CALL_ARGUMENT:
        return CALL_WITH_ARGUMENTS
    if record.what != FUNCTION:
        return record.what
    # the writers of LLVM 6 and 7 log an argument after a plain Enter
    if record.action == 3 or (record.action == 0 and header.version >= 2):
        return CALL_WITH_ARGUMENTS
    return FUNCTION


cdef bint _is_final(const Header *header, int state) noexcept nogil:
    if header.version == 1:
        return state == END_OF_BUFFER
    return state not in (START, NEW_BUFFER, WALL_TIME, PID)


cdef bint _verify_block(const Header *header, const u8 *data, const Block *block, const u32 *allowed,
                        Violation *violation) noexcept nogil:
    cdef u64 at = block.begin
    cdef int state = START
    cdef Record record
    while at < block.end and state != END_OF_BUFFER:
        record_read(header, data + at, data + block.end, &record)
        violation.offset = at
        violation.before = state
        violation.what = record.what
        if record.what > FUNCTION or not allowed[state] >> record.what & 1:
            return False
        if record.what == PID and header.version < 3:
            return False
        if state == WALL_TIME and header.version >= 3 and record.what != PID:
            return False
        state = _next_state(header, state, &record)
        at += record.n_bytes
    violation.offset = at
    violation.before = state
    violation.what = -1
    return _is_final(header, state)


def verify(const u8[::1] data not None):
    """Return the first illegal transition of each buffer: (offset, text); [] for a valid log.

    Only Flight Data Recorder logs have a grammar; LogError for any other bytes.
    """
    cdef Frames frames = _find_frames(data, False)
    cdef const Block *block = <const Block *>frames.blocks.data
    cdef u32[N_STATES] allowed
    cdef Violation violation
    cdef u64 i
    memset(allowed, 0, sizeof(allowed))
    for state, mask in TRANSITIONS.items():
        allowed[<int>state] = mask
    found = []
    for name, offset, skipped, _ in problems_list(&frames.problems):
        if name in FRAME_PROBLEMS:
            found.append((offset, f"{FRAME_PROBLEMS[name]}: {skipped} bytes" if skipped else FRAME_PROBLEMS[name]))
    for i in range(frames.blocks.len // sizeof(Block)):
        if not _verify_block(&frames.header, &data[0], &block[i], allowed, &violation):
            found.append((violation.offset, _explain(violation.before, violation.what)))
    return sorted(found)


cdef str _explain(int before, int what):
    name = NAMES.get(before) or WHATS[before]
    if what < 0:
        return f"a buffer ends with {name}"
    return f"{WHATS[what]} after {name}"


def records(const u8[::1] data not None):
    """Yield every record as (offset, name, action | None, function, id, tsc, number, payload bytes, block).

    BufferExtents are the frames of the buffers and come without a block of their own. What is not a record
    ends its buffer, unless sound records follow. LogError when the bytes are no Flight Data Recorder log.
    """
    cdef Frames frames = _find_frames(data, True)
    cdef const Block *block = <const Block *>frames.blocks.data
    cdef Record record
    cdef u64 at, i
    for i in range(frames.blocks.len // sizeof(Block)):
        if block[i].has_extents:
            at = block[i].begin - METADATA_BYTES
            yield at, "BufferExtents", None, 0, 0, load64(&data[0] + at + 1, frames.header.is_big), 0, 0, i
        at = block[i].begin
        while at < block[i].end:
            record_read(&frames.header, &data[0] + at, &data[0] + block[i].end, &record)
            yield (
                at, WHATS[record.what], record.action if record.what == FUNCTION else None, record.function,
                record.id, record.tsc, record.number, record.payload_bytes, i,
            )
            if record.what == END_OF_BUFFER:
                break
            if record.what > FUNCTION or record.what == BUFFER_EXTENTS:
                at += bad_bytes(&frames.header, &data[0], at, block[i].end, &record)
            else:
                at += record.n_bytes
