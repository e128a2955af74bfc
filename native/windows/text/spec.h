/* SPDX-License-Identifier: Apache-2.0 */
/* A call of a program -> an item of the build spec (JSON), in xcalbuild's layout (docs/exports.md). */
#ifndef WINDOWS_SPEC_H
#define WINDOWS_SPEC_H

#include "buffer.h"

/*
 * Append a string as Python's json.dumps(text, ensure_ascii=False) prints it. A lone surrogate
 * becomes its escape, \ud800; a byte that is not WTF-8 becomes \udcNN, as with surrogateescape.
 */
void json_string(struct buffer *out, struct text text);

struct spec_item {
	unsigned long pid;
	unsigned long parent; /* 0: not traced */
	struct text directory;
	const struct words *arguments;
	struct text response;
	bool has_response;
	bool is_known;
};

/* Append the item and what precedes it. */
void spec_put(struct buffer *out, const struct spec_item *item, bool is_debug, bool is_first);
void spec_end(struct buffer *out, bool is_empty);

#endif /* WINDOWS_SPEC_H */
