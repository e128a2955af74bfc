# SPDX-License-Identifier: Apache-2.0
# The tables of etrace/events.h in the shape that recognises a line fastest.
from libetrace.trace.events cimport (
    ETRACE_MAX_ARGS, ETRACE_MAX_DATA, ETRACE_N_DATA, ETRACE_N_EVENTS,
)
from libetrace.core.types cimport s8, s64, u8, u32, u64

# The number of a tag: events below ETRACE_N_EVENTS, strings from FIRST_DATA on, then markers.
cdef enum:
    FIRST_DATA = ETRACE_N_EVENTS
    CONT = FIRST_DATA + ETRACE_N_DATA
    CONT_END
    END_OF_ARGS
    N_CODES
    SEVERAL_CODES = 254  # tags with the same first two bytes
    NO_CODE = 255
    ARG_NAME_BYTES = 32


cdef struct Tag:
    u64 word  # its first eight bytes
    u64 mask
    const char *text
    size_t len
    bint is_string  # may be followed by [n] and _end


cdef struct Argument:
    char name[ARG_NAME_BYTES]  # with its '='
    size_t name_len
    s8 size_of  # position of the string it is the size of, or -1
    bint is_unsigned
    bint is_wide  # 64 bits
    bint is_optional


cdef struct Form:
    u32 n_args
    u32 n_data
    bint is_bare  # args[0] has no name
    Argument args[ETRACE_MAX_ARGS]
    u8 data[ETRACE_MAX_DATA]  # codes


cdef struct Forms:
    Tag tags[N_CODES]
    Form events[ETRACE_N_EVENTS]
    u8 codes[65536]  # by the first two bytes of a tag and what follows it


# A parsed event line: sizes of its strings (NO_SIZE if absent), then the other values in order.
cdef struct Values:
    u32 sizes[ETRACE_MAX_DATA]
    u32 absent  # bit mask of strings
    s64 numbers[ETRACE_MAX_ARGS]

cdef Forms forms

cdef u32 find_code(const char *text, const char *end) noexcept nogil
cdef const char *parse_arguments(u32 event, const char *text, const char *end,
                                 Values *values) noexcept nogil
