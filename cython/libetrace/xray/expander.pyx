# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Enters and exits to calls.

An exit ends the innermost open call of its function. Calls above it have lost their own exit (a lost
buffer, longjmp, an exception): they end with it and are marked. An exit of a function that is not
open is counted, nothing more: its enter was in a buffer that is gone. A tail exit is an exit; what was
called instead begins as a call of the caller's caller, as the log has it.
"""
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from libetrace.core.memory cimport arena_free, buffer_add, buffer_free, buffer_reserve
from libetrace.xray.durations cimport durations_add
from libetrace.xray.records cimport ENTER, ENTER_ARGS, EXIT, TAIL_EXIT


# ---- keys to rows ----
# Hash table from 64-bit keys to dense rows: open addressing, at most half full.


cdef enum:
    FIRST_SLOTS = 1024


cdef void _put(Rows *rows, u64 key, u32 row) noexcept nogil:
    cdef u64 at = key * <u64>0x9e3779b97f4a7c15
    at = (at ^ at >> 32) & rows.mask
    while rows.slots[at].row:
        at = (at + 1) & rows.mask
    rows.slots[at].key = key
    rows.slots[at].row = row + 1


cdef int rows_grow(Rows *rows) noexcept nogil:
    cdef u64 size = (rows.mask + 1) * 2 if rows.slots != NULL else FIRST_SLOTS
    cdef Slot *slots = <Slot *>calloc(size, sizeof(Slot))
    cdef const u64 *keys = <const u64 *>rows.keys.data
    cdef u64 i
    if slots == NULL:
        return -1
    free(rows.slots)
    rows.slots = slots
    rows.mask = size - 1
    for i in range(rows.n):
        _put(rows, keys[i], <u32>i)
    return 0


cdef u32 rows_add(Rows *rows, u64 key) noexcept nogil:
    if rows.n >= NO_ROW - 1 or (2 * rows.n >= rows.mask and rows_grow(rows) < 0):
        return NO_ROW
    if buffer_add(&rows.keys, &key, sizeof(key)) < 0:
        return NO_ROW
    _put(rows, key, <u32>rows.n)
    rows.n += 1
    return <u32>(rows.n - 1)


cdef void rows_free(Rows *rows) noexcept nogil:
    free(rows.slots)
    buffer_free(&rows.keys)
    memset(rows, 0, sizeof(rows[0]))


# ---- calls ----


cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void **place, size_t alignment, size_t size)

cdef extern from "<sys/mman.h>" nogil:
    int MADV_HUGEPAGE
    int madvise(void *place, size_t size, int advice)

cdef enum:
    HUGE_PAGE = 1 << 21


cdef void *_allocate(u64 size) noexcept nogil:
    # In huge pages where there are some: columns are long, and touched from end to end.
    cdef void *place = NULL
    if size < HUGE_PAGE:
        return malloc(size + 1)
    size = (size + HUGE_PAGE) & ~<u64>(HUGE_PAGE - 1)
    if posix_memalign(&place, HUGE_PAGE, size) != 0:
        return NULL
    madvise(place, size, MADV_HUGEPAGE)
    return place


cdef int _allocate_calls(Calls *calls, u64 n) noexcept nogil:
    calls.start = <u64 *>_allocate(n * sizeof(u64))
    calls.ticks = <u64 *>_allocate(n * sizeof(u64))
    calls.self_ticks = <u64 *>_allocate(n * sizeof(u64))
    calls.parent = <s64 *>_allocate(n * sizeof(s64))
    calls.function = <u32 *>_allocate(n * sizeof(u32))
    calls.depth = <u32 *>_allocate(n * sizeof(u32))
    calls.thread = <u32 *>_allocate(n * sizeof(u32))
    calls.ending = <u8 *>_allocate(n)
    if calls.start == NULL or calls.ticks == NULL or calls.self_ticks == NULL or calls.parent == NULL:
        return -1
    if calls.function == NULL or calls.depth == NULL or calls.thread == NULL or calls.ending == NULL:
        return -1
    return 0


cdef int expander_init(Expander *expander, u64 n_records) noexcept nogil:
    """Make room for as many calls as records; pages that are not used are never touched."""
    if expander.options.wants_calls:
        return _allocate_calls(&expander.calls, n_records)
    return 0


cdef void expander_free(Expander *expander) noexcept nogil:
    cdef Calls *calls = &expander.calls
    arena_free(&expander.arena)
    free(calls.start)
    free(calls.ticks)
    free(calls.self_ticks)
    free(calls.parent)
    free(calls.function)
    free(calls.depth)
    free(calls.thread)
    free(calls.ending)
    rows_free(&expander.functions)
    rows_free(&expander.keys)
    rows_free(&expander.paths)
    rows_free(&expander.roots)
    buffer_free(&expander.states)
    buffer_free(&expander.totals)
    buffer_free(&expander.nodes)
    buffer_free(&expander.frames)
    memset(expander, 0, sizeof(expander[0]))


cdef u32 _find_function(const Expander *expander, u32 function) noexcept nogil:
    if function < N_DIRECT:
        return expander.direct[function] - 1  # NO_ROW when it is 0
    return rows_find(&expander.functions, function)


cdef u32 _add_total(Expander *expander, u64 key) noexcept nogil:
    cdef Total total
    cdef u32 row = rows_get(&expander.keys, key)
    memset(&total, 0, sizeof(total))
    total.minimum = ~<u64>0
    if row == NO_ROW or buffer_add(&expander.totals, &total, sizeof(total)) < 0:
        return NO_ROW
    return row


cdef u32 _add_function(Expander *expander, u32 function) noexcept nogil:
    cdef FunctionState state
    cdef u32 row = rows_get(&expander.functions, function)
    state.n_open = 0
    state.is_hidden = expander.shown != NULL and rows_find(expander.shown, function) == NO_ROW
    if row == NO_ROW or buffer_add(&expander.states, &state, sizeof(state)) < 0:
        return NO_ROW
    if expander.options.by == BY_FUNCTION and _add_total(expander, function) == NO_ROW:
        return NO_ROW
    if function < N_DIRECT:
        expander.direct[function] = row + 1
    return row


cdef u32 _key_row(Expander *expander, u32 function, u32 function_row, const Frame *caller) noexcept nogil:
    cdef u64 key = function
    cdef u32 row
    if expander.options.by == BY_FUNCTION:
        return function_row  # made together
    if expander.options.by == BY_THREAD:
        key |= (<u64>expander.thread + 1) << 32
    elif caller != NULL:
        key |= ((<const u64 *>expander.functions.keys.data)[caller.row] + 1) << 32
    row = rows_find(&expander.keys, key)
    return row if row != NO_ROW else _add_total(expander, key)


cdef u32 _node(Expander *expander, u32 function, const Frame *caller) noexcept nogil:
    cdef u64 parent = caller.node + <u64>1 if caller != NULL else expander.root
    cdef u64 n_nodes = expander.paths.n
    cdef Node new
    cdef u32 node = rows_get(&expander.paths, parent << 32 | function)
    if node == NO_ROW or node < n_nodes:
        return node
    memset(&new, 0, sizeof(new))
    return node if buffer_add(&expander.nodes, &new, sizeof(new)) == 0 else NO_ROW


cdef inline Frame *_frames(Expander *expander) noexcept nogil:
    return <Frame *>expander.frames.data


cdef inline u64 _depth(const Expander *expander) noexcept nogil:
    return expander.frames.len // sizeof(Frame)


cdef inline FunctionState *_state(Expander *expander, u32 row) noexcept nogil:
    return &(<FunctionState *>expander.states.data)[row]


cdef void _begin_call(Expander *expander, u32 function, u64 tsc, u64 depth, const Frame *caller) noexcept nogil:
    cdef Calls *calls = &expander.calls
    cdef u64 call = calls.n
    calls.start[call] = tsc
    calls.function[call] = function
    calls.depth[call] = <u32>depth
    calls.thread[call] = expander.thread
    calls.parent[call] = caller.call if caller != NULL else NO_CALL
    calls.n += 1


cdef int _enter(Expander *expander, u32 function, u64 tsc) noexcept nogil:
    cdef u64 depth = _depth(expander)
    cdef Frame *caller
    cdef Frame *frame
    cdef u32 row = _find_function(expander, function)
    if row == NO_ROW:
        row = _add_function(expander, function)
        if row == NO_ROW:
            return -1
    if _state(expander, row).is_hidden:
        return 0
    if buffer_reserve(&expander.frames, sizeof(Frame)) < 0:
        return -1
    frame = &_frames(expander)[depth]
    caller = frame - 1 if depth else NULL
    frame.start = tsc
    frame.child_ticks = 0
    frame.record = expander.record
    frame.row = row
    frame.key = _key_row(expander, function, row, caller)
    frame.node = _node(expander, function, caller) if expander.options.wants_nodes else 0
    if frame.node == NO_ROW or frame.key == NO_ROW:
        return -1
    if expander.options.wants_calls:
        frame.call = <s64>expander.calls.n
        _begin_call(expander, function, tsc, depth, caller)
    _state(expander, row).n_open += 1
    expander.frames.len += sizeof(Frame)
    return 0


cdef bint _is_left_out(const Options *options, u64 start, u64 ticks) noexcept nogil:
    return ticks < options.shortest or start < options.from_tsc or start >= options.until_tsc


cdef void _count(Expander *expander, const Frame *frame, u64 ticks, u64 own) noexcept nogil:
    cdef Total *total = &(<Total *>expander.totals.data)[frame.key]
    cdef Node *node
    total.count += 1
    total.ticks += ticks
    total.self_ticks += own
    if ticks < total.minimum:
        total.minimum = ticks
    if ticks > total.maximum:
        total.maximum = ticks
    if expander.options.wants_durations and durations_add(&expander.arena, &total.durations, ticks) < 0:
        expander.is_out_of_memory = True
    if expander.options.wants_nodes:
        node = &(<Node *>expander.nodes.data)[frame.node]
        node.n_calls += 1
        node.ticks += ticks
        node.self_ticks += own


cdef void _end_call(Calls *calls, s64 call, u64 ticks, u64 own, u8 ending) noexcept nogil:
    calls.ticks[call] = ticks
    calls.self_ticks[call] = own
    calls.ending[call] = ending


# An exit was marked when it came.
cdef void _note_record(Expander *expander, const Frame *frame, bint is_left_out, u8 ending) noexcept nogil:
    if is_left_out:
        expander.left_out[frame.record] = True
    elif ending <= BY_TAIL_EXIT:
        expander.left_out[expander.record] = False


cdef void _leave(Expander *expander, u64 tsc, u8 ending) noexcept nogil:
    # End the innermost call.
    cdef u64 depth = _depth(expander)
    cdef Frame *frame = &_frames(expander)[depth - 1]
    cdef u64 ticks = tsc - frame.start if tsc >= frame.start else 0
    cdef u64 own = ticks - frame.child_ticks if ticks >= frame.child_ticks else 0
    cdef bint is_left_out = _is_left_out(&expander.options, frame.start, ticks)
    expander.n_backwards += tsc < frame.start
    expander.frames.len -= sizeof(Frame)
    _state(expander, frame.row).n_open -= 1
    if expander.options.wants_calls:
        _end_call(&expander.calls, frame.call, ticks, own, LEFT_OUT if is_left_out else ending)
    if depth > 1:
        (frame - 1).child_ticks += frame.child_ticks if is_left_out else ticks
    if expander.left_out != NULL:
        _note_record(expander, frame, is_left_out, ending)
    if is_left_out:
        return
    if ending <= BY_TAIL_EXIT or (ending == BY_CALLER and expander.options.counts_deduced):
        _count(expander, frame, ticks, own)


cdef void _exit(Expander *expander, u32 function, u64 tsc, u8 ending) noexcept nogil:
    cdef u32 row = _find_function(expander, function)
    if expander.left_out != NULL:
        expander.left_out[expander.record] = True
    if row == NO_ROW or _state(expander, row).n_open == 0:
        if row == NO_ROW or not _state(expander, row).is_hidden:
            expander.n_unmatched_exits += 1
        return
    while _frames(expander)[_depth(expander) - 1].row != row:
        expander.n_deduced += 1
        _leave(expander, tsc, BY_CALLER)
    _leave(expander, tsc, ending)


cdef int expand_begin(Expander *expander, u32 process, u32 thread) noexcept nogil:
    cdef u32 row
    if not expander.options.splits_nodes:
        return 0
    row = rows_get(&expander.roots, <u64>process << 32 | thread)
    expander.root = <u64>NO_ROW - row
    return -1 if row == NO_ROW else 0


cdef int expand(Expander *expander, const u64 *tsc, const u32 *function, const u8 *kind, u64 n) noexcept nogil:
    cdef u64 i
    cdef u32 kinds = 0
    for i in range(n):
        kinds |= <u32>1 << kind[i]
        if kind[i] == ENTER or kind[i] == ENTER_ARGS:
            if _enter(expander, function[i], tsc[i]) < 0:
                return -1
        elif kind[i] == EXIT:
            _exit(expander, function[i], tsc[i], BY_EXIT)
        elif kind[i] == TAIL_EXIT:
            _exit(expander, function[i], tsc[i], BY_TAIL_EXIT)
        expander.record += 1
    expander.kinds |= kinds
    if n:
        expander.last_tsc = tsc[n - 1]
    return -1 if expander.is_out_of_memory else 0


cdef int expand_end(Expander *expander) noexcept nogil:
    while expander.frames.len:
        expander.n_unfinished += 1
        _leave(expander, expander.last_tsc, BY_END_OF_LOG)
    expander.thread += 1
    expander.record = 0
    expander.last_tsc = 0
    return -1 if expander.is_out_of_memory else 0


# ---- columns ----
# Calls as Python has them: in columns without those that a filter left out; their records.


cdef u64 _pack(Calls *calls, s64 *place) noexcept nogil:
    # Close the gaps of calls that were left out; `place` is where each went. How many there are.
    cdef u64 i, n = 0
    cdef s64 caller
    for i in range(calls.n):
        caller = calls.parent[i]
        if calls.ending[i] == LEFT_OUT:
            place[i] = NO_CALL if caller < 0 else place[caller]  # for those that it called
            continue
        place[i] = <s64>n
        calls.start[n] = calls.start[i]
        calls.ticks[n] = calls.ticks[i]
        calls.self_ticks[n] = calls.self_ticks[i]
        calls.parent[n] = NO_CALL if caller < 0 else place[caller]
        calls.function[n] = calls.function[i]
        calls.depth[n] = 0 if calls.parent[n] < 0 else calls.depth[calls.parent[n]] + 1
        calls.thread[n] = calls.thread[i]
        calls.ending[n] = calls.ending[i]
        n += 1
    return n


cdef bytearray _copy(const void *column, u64 n_bytes):
    return PyByteArray_FromStringAndSize(<const char *>column, n_bytes)


cdef list call_columns(Calls *calls):
    cdef bytearray memory = bytearray(calls.n * sizeof(s64))
    cdef s64 *place = <s64 *><char *>memory
    cdef u64 n
    with nogil:
        calls.n = n = _pack(calls, place)
    del memory
    return [
        ("start", "Q", _copy(calls.start, n * 8)),
        ("ticks", "Q", _copy(calls.ticks, n * 8)),
        ("self_ticks", "Q", _copy(calls.self_ticks, n * 8)),
        ("parent", "q", _copy(calls.parent, n * 8)),
        ("function", "I", _copy(calls.function, n * 4)),
        ("depth", "I", _copy(calls.depth, n * 4)),
        ("thread", "I", _copy(calls.thread, n * 4)),
        ("ending", "B", _copy(calls.ending, n)),
    ]


cdef int _mark(Expander *expander, const u64 *tsc, const u32 *function, const u8 *kind, u64 n) noexcept nogil:
    if expander_init(expander, n) < 0 or expand_begin(expander, 0, 0) < 0:
        return -1
    return -1 if expand(expander, tsc, function, kind, n) < 0 or expand_end(expander) < 0 else 0


def mark_short_calls(const u64[::1] tsc, const u32[::1] function, const u8[::1] kind, u64 shortest):
    """Return a byte for each record of one thread: 1 for enters and exits of calls below `shortest`.

    An exit that ends no call has 1, too. `shortest` is in ticks; all columns have one length.
    """
    cdef Expander *expander
    cdef u64 n = tsc.shape[0]
    cdef int status = 0
    cdef u8[::1] marks
    if <u64>function.shape[0] != n or <u64>kind.shape[0] != n:
        raise ValueError("columns of different lengths")
    found = bytearray(n)
    if not n:
        return found
    marks = found
    expander = <Expander *>calloc(1, sizeof(Expander))
    if expander == NULL:
        raise MemoryError
    expander.options.shortest = shortest
    expander.options.until_tsc = ~<u64>0
    expander.left_out = &marks[0]
    with nogil:
        status = _mark(expander, &tsc[0], &function[0], &kind[0], n)
        expander_free(expander)
    free(expander)
    if status < 0:
        raise MemoryError
    return found
