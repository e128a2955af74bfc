# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Reads the lines of one chunk of a trace; each thread takes chunks of its own.

Most lines begin like the line before, up to the seconds: that part is compared, not parsed. Most
strings are one line of the length that their event says: they are looked up, not searched for.
"""
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, memcmp, memcpy, memset

from libetrace.trace.event_assembly cimport (
    add_line, add_string, begin_event, free_task, keep_text, lose_event_line,
)
from libetrace.trace.events cimport *
from libetrace.trace.line_grammar cimport (
    Tag, Values, find_code, forms, parse_arguments,
)
from libetrace.core.memory cimport arena_take, buffer_add, buffer_free
from libetrace.core.interned cimport NO_NAME, names_add, names_find
from libetrace.trace.trace cimport (
    BAD_ARGUMENTS, LOST_EVENTS, NO_PREFIX, READING, UNSEEN, WRONG_UPID, Stray, report_add,
)
from libetrace.core.scan cimport (
    ETRACE_PAD, etrace_decimal, etrace_digits8, etrace_equal, etrace_find_newline,
    etrace_hash64, etrace_keyed_hash, etrace_load16, etrace_load64,
)
from libetrace.core.types cimport INT64_MAX, UINT32_MAX, u32, u64

cdef extern from "etrace/events.h" nogil:
    const char *ETRACE_FIRST_LINE

cdef extern from "<string.h>" nogil:
    void *memmem(const void *where, size_t len, const void *what, size_t what_len)

cdef extern from *:
    """
    #define LIKELY(x) __builtin_expect(!!(x), 1)
    """
    bint LIKELY(bint x) nogil

cdef enum:
    NS_PER_SECOND = 1000000000
    MAX_SECONDS = 9223372036  # that fit into 63 bits of nanoseconds
    FIRST_SLOTS = 64
    MAX_STATUS = 0x7fff  # what `executions.status` holds
    HEAD_BYTES_MAX = 48  # of the ETRACE_PAD that a comparison may read too much


# The lines that begin alike: everything up to the seconds.
cdef struct Head:
    const char *bytes
    size_t len  # 0: none yet
    s64 upid
    u32 cpu
    s64 seconds_ns
    Task *task


cdef struct Prefix:
    const char *begin  # of the upid
    const char *fraction
    const char *text
    s64 upid
    u32 cpu
    s64 seconds_ns
    s64 time


cdef struct Reader:
    Chunk *chunk
    const char *at
    const char *end
    Head head
    Values values


# N,N,N,N! at `at`.
cdef bint parse_numbers(const char *at, Prefix *prefix) noexcept nogil:
    cdef u64 numbers[4]
    cdef int i
    prefix.begin = at
    for i in range(4):
        if i == 3:
            prefix.fraction = at
        if etrace_decimal(&at, &numbers[i]) <= 0 or at[0] != (c'!' if i == 3 else c','):
            return False
        at += 1
    if numbers[0] > <u64>INT64_MAX or numbers[1] > UINT32_MAX or numbers[3] >= NS_PER_SECOND:
        return False
    if numbers[2] > MAX_SECONDS or numbers[2] * NS_PER_SECOND + numbers[3] > <u64>INT64_MAX:
        return False
    prefix.text = at
    prefix.upid = <s64>numbers[0]
    prefix.cpu = <u32>numbers[1]
    prefix.seconds_ns = <s64>numbers[2] * NS_PER_SECOND
    prefix.time = prefix.seconds_ns + <s64>numbers[3]
    return True


# Where the N,N,N,N before a ! begins, NULL when that is not what is there.
cdef const char *numbers_before(const char *begin, const char *mark) noexcept nogil:
    cdef const char *at = mark
    cdef const char *digits_end
    cdef int i
    for i in range(4):
        digits_end = at
        while at > begin and c'0' <= (at - 1)[0] <= c'9':
            at -= 1
        if at == digits_end:
            return NULL
        if i < 3:
            if at == begin or (at - 1)[0] != c',':
                return NULL
            at -= 1
    return at


cdef bint find_prefix(const char *line, const char *end, Prefix *prefix) noexcept nogil:
    cdef const char *at = line
    cdef const char *numbers
    if end - line > 3 and not memcmp(line, b"0: ", 3):
        at += 3
    if at < end and c'0' <= at[0] <= c'9' and parse_numbers(at, prefix):
        return True
    at = line
    while at < end:
        at = <const char *>memchr(at, c'!', end - at)
        if at == NULL:
            return False
        numbers = numbers_before(line, at)
        if numbers != NULL:
            return parse_numbers(numbers, prefix)
        at += 1
    return False


cdef const char *parse_prefix(const char *line, const char *end, s64 *upid,
                              s64 *time) noexcept nogil:
    cdef Prefix prefix
    if end == line or line[0] == c'#' or not find_prefix(line, end, &prefix):
        return NULL
    upid[0] = prefix.upid
    time[0] = prefix.time
    return prefix.text


# The task of a upid, NULL when it has none in this chunk.
cdef Task *find_task(Chunk *chunk, s64 upid) noexcept nogil:
    cdef u32 at
    if chunk.slots == NULL:
        return NULL
    at = <u32>etrace_hash64(<u64>upid, chunk.names.seed) & chunk.mask
    while chunk.slots[at] != NULL and chunk.slots[at].upid != upid:
        at = (at + 1) & chunk.mask
    return chunk.slots[at]


cdef int grow_tasks(Chunk *chunk) noexcept nogil:
    cdef u32 mask = chunk.mask * 2 + 1 if chunk.slots != NULL else <u32>FIRST_SLOTS - 1
    cdef Task **slots = <Task **>calloc(<size_t>mask + 1, sizeof(Task *))
    cdef Task **tasks = <Task **>chunk.tasks.data
    cdef size_t i
    cdef u32 at
    if slots == NULL:
        return -1
    for i in range(chunk.tasks.len / sizeof(Task *)):
        at = <u32>etrace_hash64(<u64>tasks[i].upid, chunk.names.seed) & mask
        while slots[at] != NULL:
            at = (at + 1) & mask
        slots[at] = tasks[i]
    free(chunk.slots)
    chunk.slots = slots
    chunk.mask = mask
    return 0


cdef Task *new_task(Chunk *chunk, s64 upid) noexcept nogil:
    cdef Task *task = <Task *>arena_take(chunk.arena, sizeof(Task))
    cdef u32 at
    if task == NULL:
        return NULL
    if chunk.tasks.len / sizeof(Task *) * 2 >= chunk.mask and grow_tasks(chunk) < 0:
        return NULL
    memset(task, 0, sizeof(Task))
    task.upid = upid
    if buffer_add(&chunk.tasks, &task, sizeof(task)) < 0:
        return NULL
    at = <u32>etrace_hash64(<u64>upid, chunk.names.seed) & chunk.mask
    while chunk.slots[at] != NULL:
        at = (at + 1) & chunk.mask
    chunk.slots[at] = task
    return task


# `CPU:n [LOST m EVENTS]`, which the kernel puts between lines.
cdef bint read_lost(Chunk *chunk, const char *line, const char *end) noexcept nogil:
    cdef u64 number
    while True:
        line = <const char *>memmem(line, end - line, b"CPU:", 4)
        if line == NULL:
            return False
        line += 4
        if etrace_decimal(&line, &number) <= 0 or end - line < 7 or memcmp(line, b" [LOST ", 7):
            continue
        line += 7
        if etrace_decimal(&line, &number) <= 0 or end - line < 8 or memcmp(line, b" EVENTS]", 8):
            continue
        report_add(&chunk.report, LOST_EVENTS, chunk.n_lines, number)
        return True


# A line without a prefix.
cdef void read_other(Reader *reader, const char *line, const char *end) noexcept nogil:
    cdef Chunk *chunk = reader.chunk
    if not read_lost(chunk, line, end):
        report_add(&chunk.report, NO_PREFIX, chunk.n_lines, 1)


cdef bint is_comment(Reader *reader, const char *line, const char *end) noexcept nogil:
    cdef size_t len = 8  # of the first line's words
    if end > line and line[0] == c'#':
        return True
    return (reader.chunk.is_first and reader.chunk.n_lines == 1 and <size_t>(end - line) >= len
            and not memcmp(line, ETRACE_FIRST_LINE, len))


# A line that begins unlike the one before. 1: it has a prefix; 0: it is done with.
cdef int read_head(Reader *reader, Prefix *prefix) noexcept nogil:
    cdef const char *line = reader.at
    cdef const char *end = etrace_find_newline(line, reader.end)
    cdef Head *head = &reader.head
    if is_comment(reader, line, end) or not find_prefix(line, end, prefix):
        reader.at = end + 1
        if not is_comment(reader, line, end):
            read_other(reader, line, end)
        return 0
    if head.task == NULL or head.upid != prefix.upid:
        head.task = find_task(reader.chunk, prefix.upid)
        if head.task == NULL:
            head.task = new_task(reader.chunk, prefix.upid)
        if head.task == NULL:
            return -1
    head.bytes = line
    head.len = prefix.fraction - line
    if head.len > HEAD_BYTES_MAX or prefix.seconds_ns == <s64>MAX_SECONDS * NS_PER_SECOND:
        head.len = 0
    head.upid = prefix.upid
    head.cpu = prefix.cpu
    head.seconds_ns = prefix.seconds_ns
    return 1


# The prefix of a line that begins like the one before; False when it does not.
cdef inline bint read_like_before(Reader *reader, Prefix *prefix) noexcept nogil:
    cdef const Head *head = &reader.head
    cdef const char *at = reader.at + head.len
    cdef u64 fraction = 0
    cdef unsigned int n
    if not head.len or not etrace_equal(head.bytes, reader.at, head.len):
        return False
    n = etrace_digits8(etrace_load64(at), &fraction)
    if n == 8 and c'0' <= at[8] <= c'9':
        fraction = fraction * 10 + <u64>(at[8] - c'0')
        n = 9
    if not n or at[n] != c'!':
        return False
    prefix.text = at + n + 1
    prefix.time = head.seconds_ns + <s64>fraction
    return True


cdef inline void note_time(Chunk *chunk, s64 upid, s64 time) noexcept nogil:
    if time > chunk.max_time:
        chunk.max_time = time
    if time < chunk.min_time and upid:
        chunk.min_time = time


# Whether the status of an Exit is one that a process can have.
cdef inline bint has_status(u32 code, const Values *values) noexcept nogil:
    return code != ETRACE_EV_EXIT or values.numbers[0] <= <s64>MAX_STATUS


cdef int read_event(Reader *reader, u32 code, Prefix *prefix) noexcept nogil:
    cdef Chunk *chunk = reader.chunk
    cdef Head *head = &reader.head
    cdef const char *text = prefix.text + forms.tags[code].len + 1
    cdef const char *after = parse_arguments(code, text, reader.end, &reader.values)
    cdef bint is_wrong = (head.upid == 0) != (code == ETRACE_EV_UPID)
    if LIKELY(after != NULL and not is_wrong and has_status(code, &reader.values)):
        reader.at = after + 1
        return begin_event(chunk, head.task, code, &reader.values, prefix.time, head.cpu,
                           <u32>chunk.n_lines)
    reader.at = etrace_find_newline(text, reader.end) + 1
    report_add(&chunk.report, WRONG_UPID if after != NULL and is_wrong else BAD_ARGUMENTS,
               chunk.n_lines, 1)
    return lose_event_line(chunk, head.task)


# The expected string, whole and of the expected size. 1: read, 0: it is something else.
cdef inline int read_name(Reader *reader, const char *text) noexcept nogil:
    cdef Task *task = reader.head.task
    cdef u32 code = task.assembly.expected
    cdef const Tag *tag = &forms.tags[code]
    cdef size_t size = task.assembly.sizes[task.assembly.next]
    cdef const char *begin = text + tag.len + 1
    cdef Names *names = reader.chunk.names
    cdef u32 hash
    cdef u32 name
    if (etrace_load64(text) & tag.mask) != tag.word or text[tag.len] != c'|':
        return 0
    if begin >= reader.end or size >= <size_t>(reader.end - begin) or begin[size] != c'\n':
        return 0
    hash = <u32>etrace_keyed_hash(begin, size, names.seed)
    name = names_find(names, begin, size, hash)
    if name == NO_NAME:
        if etrace_find_newline(begin, begin + size) != begin + size:
            return 0
        name = names_add(names, begin, size, hash)
    elif names.all[name].has_newline:
        return 0
    reader.at = begin + size + 1
    return 1 if add_string(reader.chunk, task, name) == 0 else -1


cdef int add_stray(Chunk *chunk, Task *task, const char *text, const char *end) noexcept nogil:
    cdef size_t len = end - text
    cdef char *copy = <char *>arena_take(chunk.arena, len + ETRACE_PAD)
    cdef Stray stray
    if copy == NULL:
        return -1
    memcpy(copy, text, len)
    memset(copy + len, 0, ETRACE_PAD)
    copy[len] = c'\n'
    stray.task = task
    stray.text = copy
    stray.len = <u32>len
    stray.line = <u32>chunk.n_lines
    return buffer_add(&chunk.strays, &stray, sizeof(stray))


cdef int read_string(Reader *reader, u32 code, const char *text, const char *end) noexcept nogil:
    cdef Chunk *chunk = reader.chunk
    cdef Task *task = reader.head.task
    reader.at = end + 1
    if task.assembly.state != UNSEEN:
        return add_line(chunk, task, code, text, end, chunk.n_lines)
    return add_stray(chunk, task, text, end)


# Whether a line has this tag, of at most eight bytes; it has no newline, so the line has all of it.
cdef inline bint is_short_tag(const Tag *tag, const char *text) noexcept nogil:
    return (etrace_load64(text) & tag.mask) == tag.word and tag.len <= 8 and text[tag.len] == c'|'


cdef int read_line(Reader *reader) noexcept nogil:
    cdef Prefix prefix
    cdef const char *end
    cdef int status
    cdef u32 code
    reader.chunk.n_lines += 1
    if not LIKELY(read_like_before(reader, &prefix)):
        status = read_head(reader, &prefix)
        if status <= 0:
            return status
    note_time(reader.chunk, reader.head.upid, prefix.time)
    code = forms.codes[etrace_load16(prefix.text)]
    if code == reader.head.task.assembly.expected and reader.head.task.assembly.state == READING:
        if reader.head.task.assembly.next < ETRACE_MAX_DATA and not reader.head.task.assembly.has_text:
            status = read_name(reader, prefix.text)
            if status:
                return -1 if status < 0 else 0
    if code < ETRACE_N_EVENTS and is_short_tag(&forms.tags[code], prefix.text):
        return read_event(reader, code, &prefix)
    end = reader.end
    if code >= ETRACE_N_EVENTS:
        end = etrace_find_newline(prefix.text, end)
    code = find_code(prefix.text, end)
    if code < ETRACE_N_EVENTS:
        return read_event(reader, code, &prefix)
    if end == reader.end:
        end = etrace_find_newline(prefix.text, end)
    return read_string(reader, code, prefix.text, end)


# Nothing in the text of the chunk is needed any more.
cdef int end_chunk(Chunk *chunk) noexcept nogil:
    cdef Task **tasks = <Task **>chunk.tasks.data
    cdef size_t i
    for i in range(chunk.tasks.len / sizeof(Task *)):
        if keep_text(tasks[i]) < 0:
            return -1
    free(chunk.slots)
    chunk.slots = NULL
    chunk.begin = chunk.end = NULL
    return 0


cdef int read_chunk(Chunk *chunk) noexcept nogil:
    cdef Reader reader
    memset(&reader, 0, sizeof(reader))
    reader.chunk = chunk
    reader.at = chunk.begin
    reader.end = chunk.end
    chunk.min_time = INT64_MAX
    chunk.max_time = -1
    while reader.at < reader.end:
        if read_line(&reader) < 0:
            return -1
    return end_chunk(chunk)


cdef void free_chunk(Chunk *chunk) noexcept nogil:
    cdef Task **tasks = <Task **>chunk.tasks.data
    cdef size_t i
    for i in range(chunk.tasks.len / sizeof(Task *)):
        free_task(tasks[i])
    free(chunk.slots)
    chunk.slots = NULL
    buffer_free(&chunk.tasks)
    buffer_free(&chunk.strays)
