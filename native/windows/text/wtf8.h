/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-16 <-> WTF-8 (Simon Sapin, "The WTF-8 encoding"): nothing is lost, because a lone surrogate,
 * which Windows allows in names and UTF-8 does not, keeps three bytes of its own.
 */
#ifndef WINDOWS_WTF8_H
#define WINDOWS_WTF8_H

#include <stdint.h>

#include "buffer.h"

void wtf8_from_utf16(struct buffer *out, const uint16_t *text, size_t len);
/* Append UTF-16 units; a byte that is not WTF-8 becomes U+FFFD. */
void wtf8_to_utf16(struct buffer *out, struct text text);

/* What begins at the first byte of a text that is not empty. */
struct code {
	uint32_t point;
	size_t len; /* in bytes; 0: the first byte is not WTF-8 */
};

struct code wtf8_decode(struct text text);

static inline bool is_surrogate(uint32_t point)
{
	return point >= 0xD800 && point <= 0xDFFF;
}

/* What a file held, as UTF-8: a byte order mark goes, UTF-16 that has one is converted. */
void wtf8_from_file(struct buffer *out, struct text content);

#endif /* WINDOWS_WTF8_H */
