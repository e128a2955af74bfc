# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Recognises tags and reads the arguments of event lines, from the tables that events.toml renders to."""
from libc.string cimport memcmp, memcpy, memset, strlen

from libetrace.trace.events cimport *
from libetrace.core.scan cimport (
    etrace_decimal, etrace_digits8, etrace_equal, etrace_load16, etrace_load64,
)

cdef extern from "etrace/events.h" nogil:
    const etrace_event_def *etrace_event_defs
    const etrace_data_def *etrace_data_defs
    const char *ETRACE_CONT
    const char *ETRACE_CONT_END
    const char *ETRACE_END_OF_ARGS


cdef void init_tag(u32 code, const char *text, bint is_string) noexcept:
    cdef Tag *tag = &forms.tags[code]
    cdef char word[8]
    memset(word, 0, sizeof(word))
    tag.text = text
    tag.len = strlen(text)
    tag.is_string = is_string
    memcpy(word, text, min(tag.len, sizeof(word)))
    tag.word = etrace_load64(word)
    tag.mask = ~<u64>0 if tag.len >= 8 else (<u64>1 << (8 * tag.len)) - 1


cdef void init_code(u32 code, char first, char second) noexcept:
    cdef char pair[2]
    cdef u8 *place
    pair[0] = first
    pair[1] = second
    place = &forms.codes[etrace_load16(pair)]
    place[0] = <u8>code if place[0] in (NO_CODE, code) else <u8>SEVERAL_CODES


cdef void init_codes() noexcept:
    cdef u32 code
    cdef char follower
    cdef Tag *tag
    memset(forms.codes, NO_CODE, sizeof(forms.codes))
    for code in range(<u32>N_CODES):
        tag = &forms.tags[code]
        if tag.len > 1:
            init_code(code, tag.text[0], tag.text[1])
            continue
        for follower in b"|[_":
            init_code(code, tag.text[0], follower)


# Strings that an event may lack; the tables do not say it, the format page does.
cdef bint is_optional(int size_of, const etrace_event_def *event) noexcept:
    return size_of >= 0 and event.data[size_of] in (ETRACE_DATA_SR, ETRACE_DATA_MS, ETRACE_DATA_MX)


cdef void init_form(u32 event) noexcept:
    cdef const etrace_event_def *source = &etrace_event_defs[event]
    cdef Form *form = &forms.events[event]
    cdef Argument *arg
    cdef u32 i
    form.n_args = source.n_args
    form.n_data = source.n_data
    form.is_bare = source.bare
    for i in range(form.n_data):
        form.data[i] = FIRST_DATA + source.data[i]
    form.args[0].size_of = -1
    form.args[0].is_wide = form.is_bare
    for i in range(form.n_args):
        arg = &form.args[i]
        arg.name_len = source.args[i].name_len
        memcpy(arg.name, source.args[i].name, arg.name_len)
        arg.size_of = source.args[i].size_of
        arg.is_unsigned = source.args[i].is_unsigned
        arg.is_optional = is_optional(arg.size_of, source)
        arg.is_wide = arg.size_of < 0 and event in (
            ETRACE_EV_MOUNT, ETRACE_EV_SCHED_FORK, ETRACE_EV_SYS_CLONE, ETRACE_EV_USAGE,
            ETRACE_EV_WRITTEN)


cdef void init_forms() noexcept:
    cdef u32 i
    memset(&forms, 0, sizeof(forms))
    for i in range(ETRACE_N_EVENTS):
        init_tag(i, etrace_event_defs[i].tag, False)
        init_form(i)
    for i in range(ETRACE_N_DATA):
        init_tag(FIRST_DATA + i, etrace_data_defs[i].tag, True)
    init_tag(CONT, ETRACE_CONT, False)
    init_tag(CONT_END, ETRACE_CONT_END, False)
    init_tag(END_OF_ARGS, ETRACE_END_OF_ARGS, False)
    init_codes()


init_forms()


# Whether the line has this tag: what follows it decides between Cont and Cont_end.
cdef bint has_tag(const Tag *tag, const char *text, const char *end) noexcept nogil:
    cdef char follower
    if <size_t>(end - text) < tag.len or (etrace_load64(text) & tag.mask) != tag.word:
        return False
    if tag.len > 8 and memcmp(text + 8, tag.text + 8, tag.len - 8):
        return False
    if text + tag.len == end:
        return tag == &forms.tags[CONT_END]
    follower = text[tag.len]
    if follower == c'|':
        return True
    return tag.is_string and follower in (c'[', c'_')


# Code of the tag that `text` begins with, NO_CODE when there is none. The line ends at `end`.
cdef u32 find_code(const char *text, const char *end) noexcept nogil:
    cdef u32 code
    if end - text < 2:
        return NO_CODE
    code = forms.codes[etrace_load16(text)]
    if code < N_CODES:
        return code if has_tag(&forms.tags[code], text, end) else <u32>NO_CODE
    if code == SEVERAL_CODES:
        for code in range(<u32>N_CODES):
            if has_tag(&forms.tags[code], text, end):
                return code
    return NO_CODE


# A number of fewer than eight digits, as nearly all are, is within every limit.
cdef inline const char *parse_value(const Argument *arg, const char *text, s64 *value) noexcept nogil:
    cdef bint negative = text[0] == c'-' and not arg.is_unsigned
    cdef u64 magnitude
    cdef unsigned int n = etrace_digits8(etrace_load64(text + negative), &magnitude)
    if n - 1 >= 7:  # unsigned: none, too
        return parse_long(arg, text + negative, negative, value)
    value[0] = <s64>(0 - magnitude) if negative else <s64>magnitude
    return text + negative + n


cdef const char *parse_long(const Argument *arg, const char *text, bint negative,
                            s64 *value) noexcept nogil:
    cdef u64 magnitude
    cdef u64 limit
    if etrace_decimal(&text, &magnitude) <= 0:
        return NULL
    limit = <u64>0xffffffff if arg.is_unsigned else <u64>0x7fffffff
    if arg.is_wide:
        limit = ~<u64>0 if arg.is_unsigned else ~<u64>0 >> 1
    if magnitude > limit + negative:
        return NULL
    value[0] = <s64>(0 - magnitude) if negative else <s64>magnitude
    return text


cdef inline bint is_named(const Argument *arg, const char *text, const char *end) noexcept nogil:
    return <size_t>(end - text) > arg.name_len and etrace_equal(arg.name, text, arg.name_len)


# Arguments in the order of the grammar; an optional string without a size is absent.
cdef const char *parse_in_order(const Form *form, const char *text, const char *end,
                                Values *values) noexcept nogil:
    cdef const char *begin = text
    cdef u32 n_numbers = 0
    cdef u32 i
    cdef s64 value = 0
    cdef const Argument *arg
    values.absent = 0
    for i in range(form.n_args):
        arg = &form.args[i]
        if text != begin and text[0] == c',' and is_named(arg, text + 1, end):
            text += 1
        elif text != begin or not is_named(arg, text, end):
            if not arg.is_optional:
                return NULL
            values.absent |= <u32>1 << arg.size_of
            continue
        text = parse_value(arg, text + arg.name_len, &value)
        if text == NULL:
            return NULL
        if arg.size_of >= 0:
            values.sizes[arg.size_of] = <u32>value
        else:
            values.numbers[n_numbers] = value
            n_numbers += 1
    return text


# Whether every number of a Usage is one that can be, or -1.
cdef bint is_usage(const Form *form, const Values *values) noexcept nogil:
    cdef u32 i
    for i in range(form.n_args):
        if values.numbers[i] < -1:
            return False
    return True


# Reads what follows the bar of an event line; returns where it ends, NULL when it is not well formed.
# The line ends at `end` or at a newline before it.
cdef const char *parse_arguments(u32 event, const char *text, const char *end,
                                 Values *values) noexcept nogil:
    cdef const Form *form = &forms.events[event]
    cdef const char *after
    if form.is_bare:
        after = parse_value(&form.args[0], text, &values.numbers[0])
    else:
        after = parse_in_order(form, text, end, values)
    if after == NULL or after > end or (after < end and after[0] != c'\n'):
        return NULL
    if event == ETRACE_EV_SCHED_FORK and values.numbers[0] <= 0:
        return NULL
    if form.is_bare and values.numbers[0] < 0:
        return NULL
    if event == ETRACE_EV_USAGE and not is_usage(form, values):
        return NULL
    if event == ETRACE_EV_WRITTEN and not (1 <= values.numbers[0] <= 2 and values.numbers[1] >= 0):
        return NULL
    return after
