/* SPDX-License-Identifier: Apache-2.0 */
/* A call of a program -> an item of the build spec, in xcalbuild's layout (docs/exports.md). */
#ifndef WINDOWS_SPEC_H
#define WINDOWS_SPEC_H

#include "buffer.h"

struct spec_item {
	unsigned long pid;
	unsigned long parent; /* 0: not traced */
	struct text directory;
	const struct words *arguments;
	struct text response;
	bool has_response;
	bool is_known;
};

/* Append the item and what stands before it. */
void spec_put(struct buffer *out, const struct spec_item *item, bool is_debug, bool is_first);
void spec_end(struct buffer *out, bool is_empty);

#endif /* WINDOWS_SPEC_H */
