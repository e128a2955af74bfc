# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Lists of an entry of `.nfsdb.json` -> rows of a draft, one element at a time.

The keys of their elements are those that docs/nfsdb-json.md describes.
"""
from libc.string cimport memset

from libetrace.convert.json_values cimport (
    Reading, column, next_letter, no_memory, read_list, read_name, read_object, read_path,
    read_reference, read_time,
)
from libetrace.core.json_text cimport fail, scan_number, scan_open, scan_string, scan_unsigned
from libetrace.core.types cimport (
    CHANGE_LETTERS, INT64_MAX, N_CHANGES, s32, s64, u8, u32, u64,
)
from libetrace.image.column_builder cimport (
    NONE, PathFacts, Reference, add8, add32, add64, add_reference, facts_of,
)
from libetrace.image.schema cimport (
    CHANGES_KIND, CHANGES_NAME, CHANGES_OPEN, CHANGES_TIME_NS, CHILDREN_FLAGS, CHILDREN_UPID,
    CPUS_CPU, CPUS_TIME_NS, EXECUTIONS_UPID, EXISTS, FORK_TIMES_TIME_NS, INHERITED_DESCRIPTOR, INHERITED_MODE,
    INHERITED_PATH, OPENS_CLOSE_NS, OPENS_MODE, OPENS_OPEN_NS, OPENS_ORIGINAL, OPENS_PATH,
    OPENS_SIZE, OPENS_UNTIL_NS, OPEN_USES_BEGIN_NS, OPEN_USES_END_NS, OPEN_USES_MODE,
    OPEN_USES_OPEN, TYPE, WRITTEN_CUT_BYTES, WRITTEN_DESCRIPTOR, WRITTEN_EXECUTION,
    WRITTEN_STRING,
)

cdef enum:
    READ_WRITE = 2
    MAX_U32 = 0xffffffff
    BYTE = 0xff


cdef struct Child:
    s64 upid
    u64 flags
    s64 time


cdef struct Cpu:
    s64 number
    s64 time


cdef int read_child_value(Reading *reading, int letter, void *into) noexcept nogil:
    cdef Child *child = <Child *>into
    if letter == c'p':
        return scan_number(&reading.scanner, 0, INT64_MAX, &child.upid)
    if letter == c't':
        reading.draft.has_fork_times = True
        return scan_number(&reading.scanner, 0, INT64_MAX, &child.time)
    return scan_unsigned(&reading.scanner, &child.flags)


cdef int read_child(Reading *reading) noexcept nogil:
    cdef Child child = Child(NONE, 0, NONE)
    if read_object(reading, b"pft", read_child_value, &child) < 0:
        return -1
    if child.upid < 0:
        return fail(&reading.scanner, b"a child without p")
    if add64(column(reading, CHILDREN_UPID), child.upid) < 0 \
            or add64(column(reading, CHILDREN_FLAGS), <s64>child.flags) < 0 \
            or add64(column(reading, FORK_TIMES_TIME_NS), child.time) < 0:
        return no_memory(reading)
    return 0


cdef int read_cpu_value(Reading *reading, int letter, void *into) noexcept nogil:
    cdef Cpu *cpu = <Cpu *>into
    if letter == c'c':
        return scan_number(&reading.scanner, 0, MAX_U32, &cpu.number)
    return read_time(reading, &cpu.time)


cdef int read_cpu(Reading *reading) noexcept nogil:
    cdef Cpu cpu = Cpu(0, 0)
    if read_object(reading, b"ct", read_cpu_value, &cpu) < 0:
        return -1
    if add32(column(reading, CPUS_CPU), <s32>cpu.number) < 0 \
            or add64(column(reading, CPUS_TIME_NS), cpu.time) < 0:
        return no_memory(reading)
    return 0


cdef int read_reader(Reading *reading) noexcept nogil:
    cdef Reference reader
    if read_reference(reading, &reader) < 0:
        return -1
    if add_reference(&reading.draft.readers, reader) < 0:
        return no_memory(reading)
    return 0


# ---- opened files ----


# One opened file, of the text.
cdef struct Opened:
    s64 path
    s64 original
    s64 open_ns
    s64 close_ns
    s64 until_ns
    s64 mode
    s64 size
    s64 path_mode  # of the resolved path when only others were opened; else 0
    s64 path_size


# Changes of the file of the next open.
cdef int read_change(Reading *reading) noexcept nogil:
    cdef size_t row = column(reading, OPENS_PATH).len / sizeof(u32)
    cdef bint is_first = True
    cdef s64 kind = 0
    cdef s64 time = 0
    cdef s64 name = NONE
    cdef int letter
    if scan_open(&reading.scanner, c'{') < 0:
        return -1
    while True:
        letter = next_letter(reading, b"ktn", &is_first)
        if letter <= 0:
            break
        if letter == c'k':
            kind = read_change_kind(reading)
            if kind < 0:
                return -1
        elif letter == c'n':
            name = read_name(reading)
            if name < 0:
                return -1
        elif read_time(reading, &time) < 0:
            return -1
    if letter < 0:
        return -1
    if not kind:  # of a newer parser
        return 0
    if add32(column(reading, CHANGES_OPEN), <s32>row) < 0 \
            or add8(column(reading, CHANGES_KIND), <u8>kind) < 0 \
            or add64(column(reading, CHANGES_TIME_NS), time) < 0 \
            or add32(column(reading, CHANGES_NAME), <s32>name) < 0:
        return no_memory(reading)
    return 0


# Its number, 0 for an unknown one.
cdef s64 read_change_kind(Reading *reading) noexcept nogil:
    cdef const char *bytes
    cdef size_t len
    cdef s64 i
    if scan_string(&reading.scanner, &bytes, &len) < 0:
        return -1
    for i in range(N_CHANGES):
        if len == 1 and bytes[0] == CHANGE_LETTERS[i]:
            return i + 1
    return 0


# One of the uses of the next open.
cdef struct Use:
    s64 begin
    s64 end
    s64 access


cdef int read_use_value(Reading *reading, int letter, void *into) noexcept nogil:
    cdef Use *use = <Use *>into
    if letter == c'm':
        return scan_number(&reading.scanner, 0, READ_WRITE, &use.access)
    return read_time(reading, &use.begin if letter == c'b' else &use.end)


cdef int read_use(Reading *reading) noexcept nogil:
    cdef size_t row = column(reading, OPENS_PATH).len / sizeof(u32)
    cdef Use use = Use(0, 0, 0)
    reading.draft.has_uses = True
    if read_object(reading, b"bem", read_use_value, &use) < 0:
        return -1
    if add32(column(reading, OPEN_USES_OPEN), <s32>row) < 0 \
            or add64(column(reading, OPEN_USES_BEGIN_NS), use.begin) < 0 \
            or add64(column(reading, OPEN_USES_END_NS), use.end) < 0 \
            or add8(column(reading, OPEN_USES_MODE), <u8>use.access) < 0:
        return no_memory(reading)
    return 0


cdef int read_open_value(Reading *reading, int letter, void *into) noexcept nogil:
    cdef Opened *opened = <Opened *>into
    if letter == c'p':
        opened.path = read_path(reading)
        return 0 if opened.path >= 0 else -1
    if letter == c'o':
        opened.original = read_name(reading)
        return 0 if opened.original >= 0 else -1
    if letter == c'b':
        return read_time(reading, &opened.open_ns)
    if letter == c'e':
        return read_time(reading, &opened.close_ns)
    if letter == c'l':
        return read_time(reading, &opened.until_ns)
    if letter == c't':
        return read_list(reading, read_change)
    if letter == c'u':
        return read_list(reading, read_use)
    if letter == c'm':
        return scan_number(&reading.scanner, 0, BYTE, &opened.mode)
    if letter == c'f':
        return scan_number(&reading.scanner, 0, BYTE, &opened.path_mode)
    return scan_number(&reading.scanner, -INT64_MAX, INT64_MAX,
                       &opened.path_size if letter == c'n' else &opened.size)


# An open by the path's own name says the same of both.
cdef inline void note_facts(Reading *reading, const Opened *opened, bint is_own) noexcept nogil:
    cdef PathFacts *facts = facts_of(reading.draft, <u32>opened.path)
    cdef u8 mode = <u8>((opened.mode if is_own else opened.path_mode) & (EXISTS | TYPE))
    if mode:
        facts.mode = mode
        facts.size = opened.size if is_own else opened.path_size


cdef inline int add_open(Reading *reading, const Opened *opened) noexcept nogil:
    cdef s64 original = opened.original if opened.original >= 0 else opened.path
    cdef s64 until = opened.until_ns if opened.until_ns else max(opened.open_ns, opened.close_ns)
    note_facts(reading, opened, original == opened.path)
    if add32(column(reading, OPENS_PATH), <s32>opened.path) < 0 \
            or add32(column(reading, OPENS_ORIGINAL), <s32>original) < 0 \
            or add64(column(reading, OPENS_OPEN_NS), opened.open_ns) < 0 \
            or add64(column(reading, OPENS_CLOSE_NS), opened.close_ns) < 0 \
            or add8(column(reading, OPENS_MODE), <u8>opened.mode) < 0 \
            or add64(column(reading, OPENS_SIZE), opened.size) < 0 \
            or add64(column(reading, OPENS_UNTIL_NS), until) < 0:
        return no_memory(reading)
    return 0


cdef int read_open(Reading *reading) noexcept nogil:
    cdef Opened opened
    memset(&opened, 0, sizeof(opened))
    opened.path = opened.original = NONE
    if read_object(reading, b"pobeltumsfn", read_open_value, &opened) < 0:
        return -1
    if opened.path < 0:
        return fail(&reading.scanner, b"an opened file without p")
    return add_open(reading, &opened)


# A file that the execution began with.
cdef struct Inherited:
    s64 path
    s64 descriptor
    s64 mode


cdef int read_inherited_value(Reading *reading, int letter, void *into) noexcept nogil:
    cdef Inherited *file = <Inherited *>into
    if letter == c'p':
        file.path = read_path(reading)
        return 0 if file.path >= 0 else -1
    return scan_number(&reading.scanner, 0, BYTE,
                       &file.descriptor if letter == c'd' else &file.mode)


cdef int read_inherited(Reading *reading) noexcept nogil:
    cdef Inherited file = Inherited(NONE, 0, 0)
    if read_object(reading, b"pdm", read_inherited_value, &file) < 0:
        return -1
    if file.path < 0:
        return fail(&reading.scanner, b"an inherited file without p")
    if add32(column(reading, INHERITED_PATH), <s32>file.path) < 0 \
            or add8(column(reading, INHERITED_DESCRIPTOR), <u8>file.descriptor) < 0 \
            or add8(column(reading, INHERITED_MODE), <u8>file.mode) < 0:
        return no_memory(reading)
    return 0


# A piece of what the execution wrote.
cdef struct Piece:
    s64 descriptor
    s64 cut
    s64 text


cdef int read_piece_value(Reading *reading, int letter, void *into) noexcept nogil:
    cdef Piece *piece = <Piece *>into
    if letter == c't':
        piece.text = read_name(reading)
        return 0 if piece.text >= 0 else -1
    if letter == c'd':
        return scan_number(&reading.scanner, 1, 2, &piece.descriptor)
    return scan_number(&reading.scanner, 0, INT64_MAX, &piece.cut)


cdef int read_piece(Reading *reading) noexcept nogil:
    cdef size_t row = column(reading, EXECUTIONS_UPID).len / sizeof(s64)
    cdef Piece piece = Piece(NONE, 0, NONE)
    reading.draft.has_written = True
    if read_object(reading, b"dct", read_piece_value, &piece) < 0:
        return -1
    if piece.descriptor < 0 or piece.text < 0:
        return fail(&reading.scanner, b"a piece of output without d or t")
    if add32(column(reading, WRITTEN_EXECUTION), <s32>row) < 0 \
            or add8(column(reading, WRITTEN_DESCRIPTOR), <u8>piece.descriptor) < 0 \
            or add64(column(reading, WRITTEN_CUT_BYTES), piece.cut) < 0 \
            or add32(column(reading, WRITTEN_STRING), <s32>piece.text) < 0:
        return no_memory(reading)
    return 0
