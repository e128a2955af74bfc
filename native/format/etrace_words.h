/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Bytes of text eight at a time. Paths and arguments are short: this is less work than memchr() and
 * memcpy(), which the kernel does byte by byte or by string instructions. Context: any.
 */
#ifndef ETRACE_WORDS_H
#define ETRACE_WORDS_H

#include "etrace_format.h"

#ifdef __KERNEL__
#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/string.h>
#else
#include <string.h>
#include <sys/cdefs.h> /* __always_inline */
#endif

#define ETRACE_WORD 8u
#define ETRACE_WORDS(bytes) (((bytes) + ETRACE_WORD - 1) & ~(size_t)(ETRACE_WORD - 1))

#define ETRACE_ONES 0x0101010101010101u

static inline u64 etrace_load_word(const char *from)
{
	u64 word;

	memcpy(&word, from, ETRACE_WORD);
	return word;
}

static inline void etrace_clear_word(char *to)
{
	const u64 zero = 0;

	memcpy(to, &zero, ETRACE_WORD);
}

/* Non-zero when one of the eight bytes is `byte`. */
static inline u64 etrace_byte_in(u64 word, char byte)
{
	u64 zero_where_equal = word ^ (ETRACE_ONES * (u8)byte);

	return (zero_where_equal - ETRACE_ONES) & ~zero_where_equal & (ETRACE_ONES << 7);
}

/* The byte in memory of the lowest mark of etrace_byte_in(). */
static inline unsigned int etrace_first_byte(u64 marks)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the first byte of a word is its highest here: look for it from above, without carries"
#endif
	return (unsigned int)__builtin_ctzll(marks) / 8;
}

/* The first `byte` of [text, end), or `end`. Reads nothing else. */
static inline const char *etrace_find_byte(const char *text, const char *end, char byte)
{
	while ((size_t)(end - text) >= ETRACE_WORD) {
		u64 found = etrace_byte_in(etrace_load_word(text), byte);

		if (found) /* the lowest mark is right: only those above it may be carries */
			return text + etrace_first_byte(found);
		text += ETRACE_WORD;
	}
	while (text < end && *text != byte)
		text++;
	return text;
}

static inline u64 etrace_copy_word(char *to, const char *from)
{
	u64 word = etrace_load_word(from);

	memcpy(to, &word, ETRACE_WORD);
	return etrace_byte_in(word, '\n');
}

/* `bytes` is a multiple of ETRACE_WORD. */
static inline void etrace_copy_words(char *to, const char *from, size_t bytes)
{
	const char *end = from + bytes;

	for (; from < end; from += ETRACE_WORD, to += ETRACE_WORD)
		memcpy(to, from, ETRACE_WORD);
}

/* Copy and look for newlines in one go; non-zero when there is one. */
static inline u64 etrace_copy_text(char *to, const char *from, size_t len)
{
	const char *last;
	char *last_to;
	u64 newlines = 0;

	if (len < ETRACE_WORD) {
		for (; len; len--) {
			newlines |= *from == '\n';
			*to++ = *from++;
		}
		return newlines;
	}
	last = from + len - ETRACE_WORD;
	last_to = to + len - ETRACE_WORD;
	for (; from < last; from += ETRACE_WORD, to += ETRACE_WORD)
		newlines |= etrace_copy_word(to, from);
	return newlines | etrace_copy_word(last_to, last);
}

#endif /* ETRACE_WORDS_H */
