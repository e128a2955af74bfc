/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes and lists of strings that grow. A program without memory ends with a message. Strings are
 * WTF-8: UTF-8, and a lone surrogate of UTF-16 as the three bytes that UTF-8 would give it.
 */
#ifndef WINDOWS_BUFFER_H
#define WINDOWS_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define STATUS_ETRACE_FAILED 125
#define LITERAL(text) (text), (sizeof(text) - 1)

struct buffer {
	char *data;
	size_t len;
	size_t room;
};

/* A string that somebody else owns; it need not end with a null byte. */
struct text {
	const char *data;
	size_t len;
};

void buffer_add(struct buffer *buffer, const void *data, size_t len);
void buffer_add_char(struct buffer *buffer, char c);
void buffer_add_number(struct buffer *buffer, unsigned long long number);
void buffer_free(struct buffer *buffer);

static inline void buffer_add_text(struct buffer *buffer, struct text text)
{
	buffer_add(buffer, text.data, text.len);
}

static inline struct text buffer_text(const struct buffer *buffer)
{
	return (struct text){ buffer->data ? buffer->data : "", buffer->len };
}

static inline struct text text_of(const char *string)
{
	return (struct text){ string, strlen(string) };
}

/* Strings one after the other, each followed by a null byte. */
struct words {
	struct buffer bytes;
	struct buffer ends; /* size_t: where each one's null byte is */
};

void words_add(struct words *words, struct text word);
size_t words_count(const struct words *words);
struct text words_at(const struct words *words, size_t i);
void words_free(struct words *words);

/* Without regard to the case of ASCII letters. */
bool text_same(struct text a, struct text b);
bool text_ends(struct text text, struct text end);
/* `*`, `?` and letters without regard to their case. */
bool text_matches(struct text text, struct text glob);

void *must_realloc(void *old, size_t size);

#endif /* WINDOWS_BUFFER_H */
