// SPDX-License-Identifier: Apache-2.0
/* Bytes and lists of strings that grow. */
#include "buffer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_ROOM 256
#define DIGITS_MAX 20

void *must_realloc(void *old, size_t size)
{
	void *memory = realloc(old, size ? size : 1);

	if (!memory) {
		fputs("windows-tracer: error: out of memory\n", stderr);
		exit(STATUS_ETRACE_FAILED);
	}
	return memory;
}

static void make_room(struct buffer *buffer, size_t len)
{
	size_t room = buffer->room ? buffer->room : FIRST_ROOM;

	if (len > SIZE_MAX / 4 - buffer->len)
		len = SIZE_MAX / 4; /* realloc refuses, and the program ends */
	while (room < buffer->len + len)
		room *= 2;
	if (room == buffer->room)
		return;
	buffer->data = must_realloc(buffer->data, room);
	buffer->room = room;
}

void buffer_add(struct buffer *buffer, const void *data, size_t len)
{
	if (!len)
		return;
	make_room(buffer, len);
	memcpy(buffer->data + buffer->len, data, len);
	buffer->len += len;
}

void buffer_add_char(struct buffer *buffer, char c)
{
	buffer_add(buffer, &c, 1);
}

void buffer_add_number(struct buffer *buffer, unsigned long long number)
{
	char digits[DIGITS_MAX];
	size_t at = DIGITS_MAX;

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	buffer_add(buffer, digits + at, DIGITS_MAX - at);
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct buffer){ 0 };
}

void words_add(struct words *words, struct text word)
{
	buffer_add_text(&words->bytes, word);
	buffer_add(&words->ends, &words->bytes.len, sizeof(size_t));
	buffer_add_char(&words->bytes, '\0');
}

size_t words_count(const struct words *words)
{
	return words->ends.len / sizeof(size_t);
}

static size_t end_of(const struct words *words, size_t i)
{
	size_t end;

	memcpy(&end, words->ends.data + i * sizeof(size_t), sizeof(size_t));
	return end;
}

struct text words_at(const struct words *words, size_t i)
{
	size_t start = i ? end_of(words, i - 1) + 1 : 0;

	return (struct text){ words->bytes.data + start, end_of(words, i) - start };
}

void words_free(struct words *words)
{
	buffer_free(&words->bytes);
	buffer_free(&words->ends);
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool text_same(struct text a, struct text b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		if (lower(a.data[i]) != lower(b.data[i]))
			return false;
	}
	return true;
}

bool text_ends(struct text text, struct text end)
{
	if (text.len < end.len)
		return false;
	return text_same((struct text){ text.data + text.len - end.len, end.len }, end);
}

/* Only the last `*` ever has to be tried again, so the time is at most the product of the lengths. */
bool text_matches(struct text text, struct text glob)
{
	size_t at = 0, in_glob = 0, after_star = SIZE_MAX, star_at = 0;

	while (at < text.len) {
		char c = in_glob < glob.len ? glob.data[in_glob] : '\0';

		if (in_glob < glob.len && c == '*') {
			after_star = ++in_glob;
			star_at = at;
		} else if (in_glob < glob.len && (c == '?' || lower(c) == lower(text.data[at]))) {
			in_glob++;
			at++;
		} else if (after_star != SIZE_MAX) {
			in_glob = after_star;
			at = ++star_at;
		} else {
			return false;
		}
	}
	while (in_glob < glob.len && glob.data[in_glob] == '*')
		in_glob++;
	return in_glob == glob.len;
}
