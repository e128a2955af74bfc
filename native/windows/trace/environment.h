/* SPDX-License-Identifier: Apache-2.0 */
/* Which process had which variable: builds repeat them, so each variable is kept once. */
#ifndef WINDOWS_ENVIRONMENT_H
#define WINDOWS_ENVIRONMENT_H

#include <stdint.h>

#include "text/buffer.h"

struct environment {
	struct variable **slots; /* a power of two of them */
	size_t n_slots;
	size_t n_variables;
};

void environment_add(struct environment *environment, int64_t upid, const struct words *variables);
/* Append the event lines of the next variable; false after the last. `*at` begins as 0. */
bool environment_next(const struct environment *environment, size_t *at, uint64_t time_ns,
		      struct buffer *out);
void environment_free(struct environment *environment);

#endif /* WINDOWS_ENVIRONMENT_H */
