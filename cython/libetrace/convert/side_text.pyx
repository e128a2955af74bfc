# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Tables of an image -> `.nfsdb.env.json` and `.nfsdb.mounts.json`."""
from libc.stdlib cimport free, malloc, qsort

from libetrace.image.columns cimport s32_of, s64_of, u8_of, u32_of, u64_of
from libetrace.image.column_builder cimport NONE
from libetrace.convert.value_text cimport (
    FIXED_BYTES, put_number, put_reference, put_string, put_text,
)
from libetrace.core.memory cimport buffer_reserve
from libetrace.core.scan cimport etrace_put_decimal, etrace_put_text
from libetrace.image.schema cimport (
    ENVIRONMENT_STRING, ENVIRONMENT_UPID, MOUNTS_EXECUTION, MOUNTS_FLAGS, MOUNTS_KIND, MOUNTS_OK,
    MOUNTS_SOURCE, MOUNTS_TARGET, MOUNTS_TIME_NS, MOUNTS_TYPE,
)
from libetrace.core.types cimport s64, u32


# ---- environment ----


# A process that was started with a variable.
cdef struct Holder:
    u32 string
    s64 upid


cdef int compare_holders(const void *a, const void *b) noexcept nogil:
    cdef const Holder *x = <const Holder *>a
    cdef const Holder *y = <const Holder *>b
    if x.string != y.string:
        return -1 if x.string < y.string else 1
    return (x.upid > y.upid) - (x.upid < y.upid)


# The rows of `environment` by variable; NULL when there is no memory.
cdef Holder *sort_holders(Columns columns, size_t n) noexcept nogil:
    cdef Holder *holders = <Holder *>malloc((n + 1) * sizeof(Holder))
    cdef size_t i
    if holders == NULL:
        return NULL
    for i in range(n):
        holders[i].string = u32_of(columns, ENVIRONMENT_STRING)[i]
        holders[i].upid = s64_of(columns, ENVIRONMENT_UPID)[i]
    if n:
        qsort(holders, n, sizeof(Holder), compare_holders)
    return holders


cdef int put_holders(const Holder *holders, size_t n, const Texts *texts, Buffer *out) noexcept nogil:
    cdef size_t i
    for i in range(n):
        if i and holders[i].string == holders[i - 1].string:
            if put_text(out, b",") < 0:
                return -1
        elif put_string(out, b"],\n" if i else b"\n", texts, holders[i].string) < 0 \
                or put_text(out, b":[") < 0:
            return -1
        if put_number(out, b"", holders[i].upid) < 0:
            return -1
    return put_text(out, b"]\n") if n else 0


cdef int put_environment(Columns columns, const Texts *texts, Buffer *out) noexcept nogil:
    cdef size_t n = columns.length[ENVIRONMENT_UPID]
    cdef Holder *holders = sort_holders(columns, n)
    cdef int status = -1
    if holders != NULL and put_text(out, b"{") == 0:
        status = put_holders(holders, n, texts, out)
    free(holders)
    return status if status < 0 else put_text(out, b"}\n")


# ---- mounts ----


# A string that may be missing.
cdef int put_optional(Buffer *out, const char *key, const Texts *texts, s64 string) noexcept nogil:
    return 0 if string == NONE else put_string(out, key, texts, <u32>string)


cdef int put_mount(Columns columns, const Texts *texts, Buffer *out, size_t row) noexcept nogil:
    cdef char *to
    if buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = put_reference(out.data + out.len, columns, s32_of(columns, MOUNTS_EXECUTION)[row])
    out.len = to - 1 - out.data  # the object goes on
    if put_number(out, b',"t":', s64_of(columns, MOUNTS_TIME_NS)[row]) < 0 \
            or put_text(out, b',"k":"umount"' if u8_of(columns, MOUNTS_KIND)[row]
                        else b',"k":"mount"') < 0 \
            or put_optional(out, b',"source":', texts, s32_of(columns, MOUNTS_SOURCE)[row]) < 0 \
            or put_optional(out, b',"target":', texts, s32_of(columns, MOUNTS_TARGET)[row]) < 0 \
            or put_optional(out, b',"type":', texts, s32_of(columns, MOUNTS_TYPE)[row]) < 0 \
            or buffer_reserve(out, FIXED_BYTES) < 0:
        return -1
    to = etrace_put_text(out.data + out.len, b',"flags":')
    to = etrace_put_decimal(to, u64_of(columns, MOUNTS_FLAGS)[row])
    to = etrace_put_text(to, b',"ok":true}' if u8_of(columns, MOUNTS_OK)[row] else b',"ok":false}')
    out.len = to - out.data
    return 0


cdef int put_mounts(Columns columns, const Texts *texts, Buffer *out) noexcept nogil:
    cdef size_t n = columns.length[MOUNTS_KIND]
    cdef size_t row
    if put_text(out, b"[") < 0:
        return -1
    for row in range(n):
        if put_text(out, b",\n" if row else b"\n") < 0 or put_mount(columns, texts, out, row) < 0:
            return -1
    return put_text(out, b"\n]\n" if n else b"]\n")
