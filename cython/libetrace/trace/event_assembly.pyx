# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One event and the strings that follow it, line by line: a small state machine for each upid.

The usual string, whole on one line of the size that its event says, never comes here but for its
name (`add_string`). Text stays where it is in the trace until it comes in pieces.
"""
from libc.string cimport memcmp, memcpy, memset

from libetrace.trace.events cimport *
from libetrace.trace.line_grammar cimport (
    CONT, CONT_END, END_OF_ARGS, FIRST_DATA, NO_CODE, Form, forms,
)
from libetrace.core.memory cimport arena_take, buffer_add, buffer_free, buffer_reserve
from libetrace.core.interned cimport NO_NAME, names_intern
from libetrace.trace.trace cimport (
    BAD_STRING, CLOEXEC, DEAD, EMPTIES, EXCHANGES, GOES_ON, IDLE, INCOMPLETE, LOST, READING,
    REOPENS_PIPE, STRAY_STRING, UNKNOWN_TAG, UNSEEN, Assembly, Event, MountCall, Program, Text,
    UsageSums, report_add,
)
from libetrace.core.scan cimport etrace_decimal
from libetrace.core.types cimport N_USAGE, s32, u8, u64

cdef extern from "etrace/events.h" nogil:
    const char *ETRACE_END_SUFFIX

cdef enum:
    O_CLOEXEC = 0x80000
    O_ACCMODE = 3
    O_RDWR = 2
    O_CREAT = 0x40
    O_EXCL = 0x80
    O_TRUNC = 0x200
    O_TMPFILE = 0x400000  # a file without a name of its own; comes with O_DIRECTORY
    O_PATH = 0x200000  # ignores the four above
    RENAME_EXCHANGE = 2
    ARGUMENTS = FIRST_DATA + ETRACE_DATA_A
    VARIABLE = FIRST_DATA + ETRACE_DATA_ENV


cdef int append_text(Text *text, const char *bytes, size_t len) noexcept nogil:
    if not text.is_spilled:
        text.spill.len = 0
        if buffer_reserve(&text.spill, 1) < 0 \
                or buffer_add(&text.spill, text.bytes, text.len) < 0:  # bytes are never NULL
            return -1
        text.is_spilled = True
    if buffer_add(&text.spill, bytes, len) < 0:
        return -1
    text.bytes = text.spill.data
    text.len = text.spill.len
    return 0


cdef void start_text(Assembly *assembly, const char *bytes, size_t len) noexcept nogil:
    assembly.text.bytes = bytes
    assembly.text.len = len
    assembly.text.is_spilled = False
    assembly.has_text = True
    assembly.is_closed = False


cdef void drop_text(Assembly *assembly) noexcept nogil:
    assembly.has_text = False
    assembly.in_parts = False
    assembly.is_continued = False
    if assembly.text.spill.data != NULL:
        buffer_free(&assembly.text.spill)


cdef int lose(Chunk *chunk, Task *task, int problem) noexcept nogil:
    report_add(&chunk.report, problem, task.assembly.event.line, 1)
    task.assembly.event.kind = DEAD
    task.assembly.state = LOST
    drop_text(&task.assembly)
    buffer_free(&task.assembly.arguments)
    return 0


# Completes an event whose strings are all there.
cdef void store_names(Chunk *chunk, Assembly *assembly) noexcept nogil:
    cdef Event *event = assembly.event
    cdef const u32 *names = assembly.names
    if event.kind == ETRACE_EV_NEW_PROC:
        memcpy(event.payload.program.names, names, sizeof(assembly.names))
    elif event.kind in (ETRACE_EV_MOUNT, ETRACE_EV_UMOUNT):
        memcpy(event.payload.mount.names, names, sizeof(assembly.names))
    elif event.kind == ETRACE_EV_OPEN:
        event.payload.name.first = names[0]
        event.payload.name.second = names[1]
        chunk.names.all[names[0]].wants_stat = True
        chunk.names.all[names[1]].wants_stat = True
        if chunk.names.all[names[0]].is_pipe:
            event.access |= REOPENS_PIPE
    elif event.kind == ETRACE_EV_WRITTEN:
        event.fd2 = <s32>names[0]
    elif event.kind == ETRACE_EV_SYMLINK:
        event.fd = <s32>names[0]
        event.payload.name.first = names[2]
        event.payload.name.second = names[1]
        chunk.names.all[names[2]].wants_stat = True
        if names[1] != NO_NAME:
            chunk.names.all[names[1]].wants_stat = True
    else:
        event.payload.name.first = names[0]
        chunk.names.all[names[0]].wants_stat = True


# Moves on to the next string that is there.
cdef void expect_next(Chunk *chunk, Assembly *assembly) noexcept nogil:
    cdef const Form *form = &forms.events[assembly.event.kind]
    while assembly.next < form.n_data and assembly.absent & (<u32>1 << assembly.next):
        assembly.names[assembly.next] = NO_NAME
        assembly.next += 1
    assembly.part = 0
    if assembly.next < form.n_data:
        assembly.expected = form.data[assembly.next]
        return
    store_names(chunk, assembly)
    if assembly.event.kind == ETRACE_EV_NEW_PROC:
        assembly.expected = ARGUMENTS
    else:
        assembly.state = IDLE


cdef int add_string(Chunk *chunk, Task *task, u32 name) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    if name == NO_NAME:
        return -1
    assembly.names[assembly.next] = name
    assembly.next += 1
    expect_next(chunk, assembly)
    return 0


cdef int end_string(Chunk *chunk, Task *task) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    cdef u32 name
    if assembly.text.len != assembly.sizes[assembly.next]:
        return lose(chunk, task, BAD_STRING)
    name = names_intern(chunk.names, assembly.text.bytes, assembly.text.len)
    drop_text(assembly)
    return add_string(chunk, task, name)


cdef int end_variable(Chunk *chunk, Task *task) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    cdef u32 name
    if assembly.is_continued:
        return lose(chunk, task, BAD_STRING)
    name = names_intern(chunk.names, assembly.text.bytes, assembly.text.len)
    if name == NO_NAME:
        return -1
    assembly.event.fd = <s32>name
    assembly.state = IDLE
    drop_text(assembly)
    return 0


cdef int end_argument(Chunk *chunk, Assembly *assembly) noexcept nogil:
    cdef u32 name
    if not assembly.has_text:
        return 0
    name = names_intern(chunk.names, assembly.text.bytes, assembly.text.len)
    if name == NO_NAME:
        return -1
    return buffer_add(&assembly.arguments, &name, sizeof(name))


cdef int end_arguments(Chunk *chunk, Task *task) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    cdef Program *program = assembly.event.payload.program
    cdef u32 *copy
    if assembly.expected != ARGUMENTS or assembly.is_continued or assembly.arguments_left:
        return lose(chunk, task, BAD_STRING)
    if end_argument(chunk, assembly) < 0:
        return -1
    copy = <u32 *>arena_take(chunk.arena, assembly.arguments.len)
    if copy == NULL:
        return -1
    if assembly.arguments.len:
        memcpy(copy, assembly.arguments.data, assembly.arguments.len)
    program.arguments = copy
    program.n_arguments = <u32>(assembly.arguments.len / sizeof(u32))
    buffer_free(&assembly.arguments)
    drop_text(assembly)
    assembly.state = IDLE
    return 0


# The event before is as whole as it will ever be; `problem` says why no more of it comes.
cdef int finish_event(Chunk *chunk, Task *task, int problem) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    if assembly.state != READING:
        return 0
    if assembly.event.kind != ETRACE_EV_UPID or not assembly.has_text:
        return lose(chunk, task, problem)
    return end_variable(chunk, task)


# An event line that says nothing: its strings, if any, go with it.
cdef int lose_event_line(Chunk *chunk, Task *task) noexcept nogil:
    if finish_event(chunk, task, INCOMPLETE) < 0:
        return -1
    task.assembly.state = LOST
    return 0


cdef u8 access_of(s64 flags) noexcept nogil:
    cdef u8 access = <u8>(flags & O_ACCMODE)
    if access == O_ACCMODE:
        access = O_RDWR
    return access | (CLOEXEC if flags & O_CLOEXEC else 0)


cdef int fill_program(Chunk *chunk, Event *event, Assembly *assembly, s64 size) noexcept nogil:
    cdef Program *program = <Program *>arena_take(chunk.arena, sizeof(Program))
    if program == NULL:
        return -1
    memset(program, 0, sizeof(Program))
    program.chunk = chunk.number
    event.payload.program = program
    assembly.arguments_left = <u32>size
    return 0


cdef int fill_mount(Chunk *chunk, Event *event, s64 flags) noexcept nogil:
    cdef MountCall *mount = <MountCall *>arena_take(chunk.arena, sizeof(MountCall))
    if mount == NULL:
        return -1
    mount.flags = <u64>flags
    event.payload.mount = mount
    return 0


cdef int fill_usage(Chunk *chunk, Event *event, const s64 *numbers) noexcept nogil:
    cdef UsageSums *usage = <UsageSums *>arena_take(chunk.arena, sizeof(UsageSums))
    if usage == NULL:
        return -1
    memcpy(usage.values, numbers, N_USAGE * sizeof(s64))
    event.payload.usage = usage
    return 0


# Whether a file is empty or new after an Open with these flags.
cdef inline bint empties(s64 flags) noexcept nogil:
    if flags & O_PATH:
        return False
    return flags & (O_TRUNC | O_TMPFILE) or flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL


cdef int fill_event(Chunk *chunk, Event *event, Assembly *assembly,
                    const s64 *numbers) noexcept nogil:
    event.fd = <s32>numbers[0]
    event.access = 0
    event.payload.number = numbers[0]
    if event.kind == ETRACE_EV_OPEN:
        event.access = access_of(numbers[0])
        if empties(numbers[0]):
            event.access |= EMPTIES
        event.fd = <s32>numbers[2]
    elif event.kind in (ETRACE_EV_PIPE, ETRACE_EV_DUP):
        event.fd2 = <s32>numbers[1]
        event.access = access_of(numbers[2])
    elif event.kind == ETRACE_EV_RENAME2FROM and numbers[0] & RENAME_EXCHANGE:
        event.access = EXCHANGES
    elif event.kind == ETRACE_EV_NEW_PROC:
        return fill_program(chunk, event, assembly, numbers[0])
    elif event.kind in (ETRACE_EV_MOUNT, ETRACE_EV_UMOUNT):
        return fill_mount(chunk, event, numbers[0])
    elif event.kind == ETRACE_EV_USAGE:
        return fill_usage(chunk, event, numbers)
    elif event.kind == ETRACE_EV_WRITTEN:
        event.payload.number = numbers[1]
    elif event.kind == ETRACE_EV_UPID:
        event.fd = <s32>NO_NAME
    return 0


cdef void link_event(Task *task, Event *event) noexcept nogil:
    event.next = NULL
    if task.last == NULL:
        task.first = event
    else:
        task.last.next = event
        if task.last.time > event.time:
            task.is_unsorted = True
    task.last = event


# Between the UPID lines of a group, or between the last of them and the variable.
cdef bint waits_for_variable(const Assembly *assembly) noexcept nogil:
    return (assembly.state == READING and assembly.event.kind == ETRACE_EV_UPID
            and not assembly.has_text)


cdef int begin_event(Chunk *chunk, Task *task, u32 code, const Values *values, s64 time,
                     u32 cpu, u32 line) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    cdef bint goes_on = code == ETRACE_EV_UPID and waits_for_variable(assembly)
    cdef Event *event
    if assembly.state == READING and not goes_on and finish_event(chunk, task, INCOMPLETE) < 0:
        return -1
    event = <Event *>arena_take(chunk.arena, sizeof(Event))
    if event == NULL:
        return -1
    event.time = time
    event.line = line
    event.cpu = cpu
    event.chunk = chunk.number
    event.kind = <u8>code
    if fill_event(chunk, event, assembly, values.numbers) < 0:
        return -1
    link_event(task, event)
    chunk.n_events[code] += 1
    if goes_on:
        event.access |= GOES_ON
    if assembly.state == UNSEEN:
        task.begins_with_upid = code == ETRACE_EV_UPID
    assembly.event = event
    assembly.state = IDLE
    if forms.events[code].n_data:
        assembly.state = READING
        assembly.next = 0
        assembly.absent = values.absent
        memcpy(assembly.sizes, values.sizes, sizeof(assembly.sizes))
        expect_next(chunk, assembly)
    elif code == ETRACE_EV_UPID:
        assembly.state = READING
        assembly.expected = VARIABLE
        assembly.next = ETRACE_MAX_DATA
        assembly.part = 0
    return 0


cdef int add_continuation(Chunk *chunk, Task *task, const char *text,
                          const char *end) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    if not assembly.has_text or assembly.is_closed or (assembly.expected == ARGUMENTS
                                 and <size_t>(end - text) + 1 > assembly.arguments_left):
        return lose(chunk, task, BAD_STRING)
    if assembly.expected == ARGUMENTS:
        assembly.arguments_left -= <u32>(end - text) + 1
    assembly.is_continued = True
    if append_text(&assembly.text, b"\n", 1) < 0:
        return -1
    return append_text(&assembly.text, text, end - text)


cdef int end_continuation(Chunk *chunk, Task *task) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    if not assembly.is_continued:
        return lose(chunk, task, BAD_STRING)
    assembly.is_continued = False
    assembly.is_closed = True
    if assembly.in_parts or assembly.expected in (ARGUMENTS, VARIABLE):
        return 0
    return end_string(chunk, task)


# One more part of a string, or an item of the argument list.
cdef int add_part(Chunk *chunk, Task *task, u64 number, const char *text,
                  const char *end) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    if number != assembly.part or (assembly.has_text and not assembly.in_parts):
        return lose(chunk, task, BAD_STRING)
    assembly.part += 1
    assembly.in_parts = True
    assembly.is_closed = False
    if assembly.has_text:
        return append_text(&assembly.text, text, end - text)
    start_text(assembly, text, end - text)
    return 0


cdef int add_argument(Chunk *chunk, Task *task, u64 number, const char *text,
                      const char *end) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    cdef bint is_new = number == assembly.part
    cdef size_t size = <size_t>(end - text) + is_new
    if not is_new and (not assembly.part or number != assembly.part - 1):
        return lose(chunk, task, BAD_STRING)
    if size > assembly.arguments_left:
        return lose(chunk, task, BAD_STRING)
    assembly.arguments_left -= <u32>size
    assembly.is_closed = False
    if not is_new:
        return append_text(&assembly.text, text, end - text)
    if end_argument(chunk, assembly) < 0:
        return -1
    start_text(assembly, text, end - text)
    assembly.part += 1
    return 0


cdef int add_numbered(Chunk *chunk, Task *task, u32 code, const char *text,
                      const char *end) noexcept nogil:
    cdef u64 number
    cdef const char *after = text
    if etrace_decimal(&after, &number) <= 0 or after >= end or after[0] != c']':
        return lose(chunk, task, BAD_STRING)
    if code == ARGUMENTS:
        return add_argument(chunk, task, number, after + 1, end)
    return add_part(chunk, task, number, after + 1, end)


cdef int add_whole(Chunk *chunk, Task *task, const char *text, const char *end) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    if assembly.has_text or assembly.expected in (ARGUMENTS, VARIABLE):
        return lose(chunk, task, BAD_STRING)
    start_text(assembly, text, end - text)
    if assembly.text.len < assembly.sizes[assembly.next]:
        return 0  # Cont may follow
    return end_string(chunk, task)


cdef bint is_end_line(const char *text, const char *end) noexcept nogil:
    cdef size_t len = 4  # of the suffix
    return <size_t>(end - text) == len and not memcmp(text, ETRACE_END_SUFFIX, len)


cdef int add_tagged(Chunk *chunk, Task *task, u32 code, const char *text,
                    const char *end) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    if code != assembly.expected or assembly.is_continued:
        return lose(chunk, task, BAD_STRING)
    text += forms.tags[code].len
    if text[0] == c'|':
        return add_whole(chunk, task, text + 1, end)
    if text[0] == c'[':
        return add_numbered(chunk, task, code, text + 1, end)
    if is_end_line(text, end) and assembly.in_parts and code != VARIABLE:
        return end_string(chunk, task)
    return lose(chunk, task, BAD_STRING)


# A line after a variable: one more part of it, or something else that does not change it.
cdef bint ends_variable(const Assembly *assembly, u32 code, const char *text) noexcept nogil:
    if assembly.expected != VARIABLE or not assembly.has_text or assembly.is_continued:
        return False
    if code == CONT:
        return assembly.is_closed
    return code != VARIABLE or text[forms.tags[code].len] != c'[' or starts_with_0(text)


# Env[0] begins another variable.
cdef bint starts_with_0(const char *text) noexcept nogil:
    cdef const char *at = text + forms.tags[<int>VARIABLE].len + 1
    cdef u64 number
    return etrace_decimal(&at, &number) > 0 and number == 0 and at[0] == c']'


# A line that is not an event: part of the event before it in the same upid, which it may cost.
cdef int add_line(Chunk *chunk, Task *task, u32 code, const char *text, const char *end,
                  u64 line) noexcept nogil:
    cdef Assembly *assembly = &task.assembly
    if assembly.state == LOST:
        return 0
    if assembly.state == READING and ends_variable(assembly, code, text):
        if end_variable(chunk, task) < 0:
            return -1
    if assembly.state != READING:
        report_add(&chunk.report, STRAY_STRING if code != NO_CODE else UNKNOWN_TAG, line, 1)
        return 0
    if code == CONT:
        return add_continuation(chunk, task, text + forms.tags[code].len + 1, end)
    if code == CONT_END:
        if end - text > <s64>forms.tags[code].len + 1:  # more than the `|` at its end
            return lose(chunk, task, BAD_STRING)
        return end_continuation(chunk, task)
    if code == END_OF_ARGS:
        return end_arguments(chunk, task)
    if code == NO_CODE:
        return lose(chunk, task, BAD_STRING)
    return add_tagged(chunk, task, code, text, end)


cdef int keep_text(Task *task) noexcept nogil:
    if not task.assembly.has_text or task.assembly.text.is_spilled:
        return 0
    return append_text(&task.assembly.text, b"", 0)


cdef void free_task(Task *task) noexcept nogil:
    buffer_free(&task.assembly.text.spill)
    buffer_free(&task.assembly.arguments)
