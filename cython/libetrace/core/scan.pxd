# SPDX-License-Identifier: Apache-2.0
# Byte work in C; the rules of use are in scan.h.
from libetrace.core.types cimport u16, u64

cdef extern from "scan.h" nogil:
    enum: ETRACE_BLOCK_BYTES
    enum: ETRACE_PAD
    enum: ETRACE_DIGITS_MAX
    enum: ETRACE_GROWN_BLOCK_BYTES
    u16 etrace_load16(const char *at)
    u64 etrace_load64(const char *at)
    bint etrace_equal(const char *a, const char *b, size_t len)
    const char *etrace_find_newline(const char *at, const char *end)
    const char *etrace_find_text_end(const char *at, const char *end)
    unsigned int etrace_digits8(u64 word, u64 *value)
    int etrace_decimal(const char **at, u64 *value)
    u64 etrace_hash(const char *at, size_t len, u64 seed)
    u64 etrace_keyed_hash(const char *at, size_t len, u64 seed)
    u64 etrace_hash64(u64 value, u64 seed)
    char *etrace_copy(char *to, const char *from_, size_t len)
    size_t etrace_copy_plain(char *to, const char *from_, size_t len)
    size_t etrace_utf8_length(const char *at, size_t len)
    char *etrace_put_decimal(char *to, u64 value)
    char *etrace_put_text(char *to, const char *text)
    void etrace_prefetch(const void *at)
    u64 etrace_take(u64 *counter)
    u64 etrace_peek(const u64 *counter)
    void etrace_add(u64 *counter, u64 n)
    u64 etrace_claim(u64 *counter, u64 n)
