/* SPDX-License-Identifier: Apache-2.0 */
/* What a process writes to standard error and output since its last execution, for the Written lines. */
#ifndef ETRACE_CAPTURE_WRITTEN_H
#define ETRACE_CAPTURE_WRITTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "etrace_format.h"

#define WRITTEN_READ_MAX (ETRACE_KEPT_OUTPUT_BYTES / 2) /* at once */

struct written;

/* Where the bytes are: copy `n` of them, from `offset` of what was written at once, to `into`. */
struct written_source {
	void (*read)(const struct written_source *source, u64 offset, char *into, size_t n);
};

/* Add `n` bytes for standard error or output; `*written` is made when it is NULL. */
void written_add(struct written **written, bool is_error, const struct written_source *source, u64 n);

/*
 * Hand on the pieces of both, standard output first: values and text of a Written line. `has_failed`:
 * the execution did, and is to keep its text in a build that has written a lot. Frees them.
 */
void written_take(struct written **written, bool has_failed,
		  void (*put)(void *context, const s64 *values, const struct etrace_text *text),
		  void *context);

#endif /* ETRACE_CAPTURE_WRITTEN_H */
