# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Entries of `.nfsdb.json` -> executions of a draft, in order of (upid, index).

The keys are those that docs/nfsdb-json.md describes; only `p` and `x` of an entry must
be there. The text is read once when its entries are in order of (p, x), else twice. Several entries
with one (p, x) are one execution (`etrace_parser --split`): they share all but their opens.
"""
from libc.stdlib cimport qsort
from libc.string cimport memset

from libetrace.core.types cimport (
    INT64_MAX, N_USAGE, USAGE_LETTERS, s16, s32, s64, u32, u64,
)
from libetrace.image.column_builder cimport (
    NONE, Draft, Reference, add16, add32, add64, add_reference, draft_clear, draft_name,
    draft_path,
)
from libetrace.core.limits cimport EXECUTIONS, OPENS, ceilings, limit_text
from libetrace.core.memory cimport Buffer, buffer_add, buffer_free
from libetrace.convert.execution_lists cimport (
    read_child, read_cpu, read_inherited, read_open, read_piece, read_reader,
)
from libetrace.convert.products cimport (
    Products, add_products, products_begin, products_end, read_product,
)
from libetrace.convert.json_values cimport (
    MAX_INDEX, Reading, column, next_letter, no_memory, read_list, read_name, read_object,
    read_reference, read_strings, read_time,
)
from libetrace.core.json_text cimport (
    Scanner, fail, scan_end, scan_more, scan_number, scan_open, scan_string,
)
from libetrace.image.schema cimport (
    ARGUMENTS_STRING, CHANGES_NAME, CHILDREN_UPID, CPUS_CPU, EXECUTIONS_ARGV_START,
    EXECUTIONS_BINARY, EXECUTIONS_CHILDREN_START, EXECUTIONS_CPUS_START, EXECUTIONS_CWD,
    EXECUTIONS_ELAPSED_NS, EXECUTIONS_INDEX, EXECUTIONS_INHERITED_START, EXECUTIONS_OPENS_START,
    EXECUTIONS_READERS_START, EXECUTIONS_START_NS, EXECUTIONS_STATUS, EXECUTIONS_UPID,
    INHERITED_PATH, N_COLUMNS, OPENS_PATH, OPENS_UNTIL_NS, OPEN_USES_MODE, OPEN_USES_OPEN,
    USAGE_USER_NS,
)

cdef enum:
    MAX_STATUS = 0x7fff


# The single values of an entry; its lists go directly to their columns.
cdef struct Entry:
    s64 upid
    s64 index
    s64 start_ns
    s64 elapsed_ns
    s64 status
    s64 binary
    s64 cwd
    Reference parent
    s64 usage[N_USAGE]
    bint has_last_uses  # it has the key h: its opens say how long they were used
    Products products


# Where an entry begins in the text, and its sort key.
cdef struct Place:
    s64 upid
    s64 index
    u64 at


# ---- an entry ----


cdef int read_usage_value(Reading *reading, int letter, void *into) noexcept nogil:
    cdef s64 *usage = <s64 *>into
    cdef int i
    for i in range(N_USAGE):
        if letter == USAGE_LETTERS[i]:
            return scan_number(&reading.scanner, NONE, INT64_MAX, &usage[i])
    return 0


cdef int read_usage(Reading *reading, Entry *entry) noexcept nogil:
    reading.draft.has_usage = True
    return read_object(reading, USAGE_LETTERS, read_usage_value, entry.usage)


cdef int read_binary(Reading *reading, Entry *entry) noexcept nogil:
    cdef const char *bytes
    cdef size_t len
    entry.binary = NONE
    if scan_string(&reading.scanner, &bytes, &len) < 0:
        return -1
    if len == 0:
        return 0
    entry.binary = draft_path(reading.draft, bytes, len)
    return no_memory(reading) if entry.binary < 0 else 0


cdef int read_scalar(Reading *reading, int letter, Entry *entry) noexcept nogil:
    cdef Scanner *scanner = &reading.scanner
    if letter == c'p':
        return scan_number(scanner, 0, INT64_MAX, &entry.upid)
    if letter == c'x':
        return scan_number(scanner, 0, MAX_INDEX, &entry.index)
    if letter == c's':
        return read_time(reading, &entry.start_ns)
    if letter == c'e':
        return read_time(reading, &entry.elapsed_ns)
    if letter == c'!':
        return scan_number(scanner, NONE, MAX_STATUS, &entry.status)
    if letter == c'r':
        return read_reference(reading, &entry.parent)
    if letter == c'w':
        entry.cwd = read_name(reading)
        return 0 if entry.cwd >= 0 else -1
    return read_binary(reading, entry)


cdef int read_value(Reading *reading, int letter, Entry *entry) noexcept nogil:
    if letter == c'v':
        return read_strings(reading, column(reading, ARGUMENTS_STRING))
    if letter == c'c':
        return read_list(reading, read_child)
    if letter == c'i':
        return read_list(reading, read_reader)
    if letter == c'u':
        return read_list(reading, read_cpu)
    if letter == c'o':
        return read_list(reading, read_open)
    if letter == c'a':
        return read_usage(reading, entry)
    if letter == c'y':
        return read_list(reading, read_piece)
    if letter == c'h':
        entry.has_last_uses = reading.draft.has_last_uses = True
        return read_list(reading, read_inherited)
    if letter == c'n' or letter == c'm' or letter == c'd' or letter == c'l' or letter == c't':
        return read_product(reading, letter, &entry.products)
    return read_scalar(reading, letter, entry)


cdef int read_entry(Reading *reading, Entry *entry) noexcept nogil:
    cdef bint is_first = True
    cdef int letter
    cdef int i
    memset(entry, 0, sizeof(entry[0]))
    for i in range(N_USAGE):
        entry.usage[i] = NONE
    entry.upid = entry.index = entry.status = entry.binary = entry.cwd = NONE
    entry.parent.upid = NONE
    products_begin(&entry.products)
    reading.key = reading.inner = 0
    if scan_open(&reading.scanner, c'{') < 0:
        return -1
    while True:
        letter = next_letter(reading, b"pxsebwvcrihuay!onmdlt", &is_first)
        if letter <= 0:
            break
        reading.key = <char>letter
        reading.inner = 0
        if read_value(reading, letter, entry) < 0:
            return -1
    if letter < 0:
        return -1
    reading.key = 0
    if entry.upid < 0:
        return fail(&reading.scanner, b"an execution without the number p")
    if entry.index < 0:
        return fail(&reading.scanner, b"an execution without the number x")
    return 0


cdef int end_lists(Reading *reading) noexcept nogil:
    cdef Draft *draft = reading.draft
    if add64(&draft.columns[EXECUTIONS_ARGV_START],
             draft.columns[ARGUMENTS_STRING].len / sizeof(u32)) < 0 \
            or add64(&draft.columns[EXECUTIONS_OPENS_START],
                     draft.columns[OPENS_PATH].len / sizeof(u32)) < 0 \
            or add64(&draft.columns[EXECUTIONS_CHILDREN_START],
                     draft.columns[CHILDREN_UPID].len / sizeof(s64)) < 0 \
            or add64(&draft.columns[EXECUTIONS_INHERITED_START],
                     draft.columns[INHERITED_PATH].len / sizeof(u32)) < 0 \
            or add64(&draft.columns[EXECUTIONS_READERS_START],
                     draft.readers.len / sizeof(Reference)) < 0 \
            or add64(&draft.columns[EXECUTIONS_CPUS_START],
                     draft.columns[CPUS_CPU].len / sizeof(u32)) < 0:
        return no_memory(reading)
    return 0


cdef int add_usage(Draft *draft, const Entry *entry) noexcept nogil:
    cdef int i
    for i in range(N_USAGE):
        if add64(&draft.columns[USAGE_USER_NS + i], entry.usage[i]) < 0:
            return -1
    return 0


cdef int add_execution(Reading *reading, const Entry *entry) noexcept nogil:
    cdef Draft *draft = reading.draft
    cdef s64 cwd = entry.cwd if entry.cwd >= 0 else draft_name(draft, b"", 0)
    if cwd < 0 or add64(&draft.columns[EXECUTIONS_UPID], entry.upid) < 0 \
            or add32(&draft.columns[EXECUTIONS_INDEX], <s32>entry.index) < 0 \
            or add64(&draft.columns[EXECUTIONS_START_NS], entry.start_ns) < 0 \
            or add64(&draft.columns[EXECUTIONS_ELAPSED_NS], entry.elapsed_ns) < 0 \
            or add32(&draft.columns[EXECUTIONS_BINARY], <s32>entry.binary) < 0 \
            or add32(&draft.columns[EXECUTIONS_CWD], <s32>cwd) < 0 \
            or add16(&draft.columns[EXECUTIONS_STATUS], <s16>entry.status) < 0 \
            or add_usage(draft, entry) < 0 \
            or add_reference(&draft.parents, entry.parent) < 0:
        return no_memory(reading)
    if end_lists(reading) < 0:
        return -1
    return add_products(reading, &entry.products)


# An entry that goes on with the files of the one before: all else is there already. Opens, changes
# and uses stay.
cdef void join_entry(Draft *draft, const Draft *before) noexcept nogil:
    cdef Buffer *starts = &draft.columns[EXECUTIONS_OPENS_START]
    cdef int i
    for i in range(N_COLUMNS):
        if not OPENS_PATH <= i <= CHANGES_NAME and not OPEN_USES_OPEN <= i <= OPEN_USES_MODE:
            draft.columns[i].len = before.columns[i].len
    draft.readers.len = before.readers.len
    (<u64 *>(starts.data + starts.len - sizeof(u64)))[0] = draft.columns[OPENS_PATH].len / sizeof(u32)


# The entry of the opens from row `begin` on has no ends of uses.
cdef void forget_last_uses(Draft *draft, size_t begin) noexcept nogil:
    cdef s64 *until = <s64 *>draft.columns[OPENS_UNTIL_NS].data
    cdef size_t i
    for i in range(begin, draft.columns[OPENS_UNTIL_NS].len / sizeof(s64)):
        until[i] = NONE


cdef int take_entry(Reading *reading, Place *place) noexcept nogil:
    cdef Draft *draft = reading.draft
    cdef Draft before = draft[0]
    cdef size_t n_rows = draft.columns[EXECUTIONS_UPID].len / sizeof(s64)
    cdef Entry entry
    cdef int status = 0
    if read_entry(reading, &entry) < 0:
        products_end(&entry.products)
        return -1
    if not entry.has_last_uses:
        forget_last_uses(draft, before.columns[OPENS_UNTIL_NS].len / sizeof(s64))
    if n_rows and (<s64 *>draft.columns[EXECUTIONS_UPID].data)[n_rows - 1] == entry.upid \
            and (<s32 *>draft.columns[EXECUTIONS_INDEX].data)[n_rows - 1] == entry.index:
        join_entry(draft, &before)
    elif n_rows >= ceilings[EXECUTIONS]:
        status = fail(&reading.scanner, limit_text(EXECUTIONS))
    elif draft.columns[OPENS_PATH].len / sizeof(u32) > ceilings[OPENS]:
        status = fail(&reading.scanner, limit_text(OPENS))
    else:
        status = add_execution(reading, &entry)
    products_end(&entry.products)
    place.upid = entry.upid
    place.index = entry.index
    return status


# ---- all entries ----


cdef int compare_places(const void *a, const void *b) noexcept nogil:
    cdef const Place *first = <const Place *>a
    cdef const Place *second = <const Place *>b
    if first.upid != second.upid:
        return -1 if first.upid < second.upid else 1
    if first.index != second.index:
        return -1 if first.index < second.index else 1
    return -1 if first.at < second.at else 1


cdef int read_in_file_order(Reading *reading, Buffer *places) noexcept nogil:
    cdef bint is_first = True
    cdef int status
    cdef Place place
    if scan_open(&reading.scanner, c'[') < 0:
        return -1
    while True:
        status = scan_more(&reading.scanner, c']', is_first)
        if status < 0:
            return -1
        if status == 0:
            break
        is_first = False
        reading.entry += 1
        place.at = reading.scanner.at - reading.begin
        if take_entry(reading, &place) < 0:
            return -1
        if buffer_add(places, &place, sizeof(place)) < 0:
            return no_memory(reading)
    reading.entry = NONE
    reading.key = 0
    return scan_end(&reading.scanner)


cdef bint is_ascending(const Place *places, size_t n) noexcept nogil:
    cdef size_t i
    for i in range(1, n):
        if compare_places(&places[i - 1], &places[i]) > 0:
            return False
    return True


cdef int read_in_order(Reading *reading, const Place *places, size_t n) noexcept nogil:
    cdef Place place
    cdef size_t i
    if draft_clear(reading.draft) < 0:
        return no_memory(reading)
    for i in range(n):
        reading.scanner.at = reading.begin + places[i].at
        if take_entry(reading, &place) < 0:
            return -1
    return 0


cdef int read_executions(Reading *reading) noexcept nogil:
    cdef Buffer places
    cdef size_t n
    cdef int status
    memset(&places, 0, sizeof(places))
    status = read_in_file_order(reading, &places)
    n = places.len / sizeof(Place)
    if status == 0 and not is_ascending(<Place *>places.data, n):
        qsort(places.data, n, sizeof(Place), compare_places)
        status = read_in_order(reading, <Place *>places.data, n)
    buffer_free(&places)
    return status
