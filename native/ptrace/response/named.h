/* SPDX-License-Identifier: Apache-2.0 */
/* The response files of one command, each once. */
#ifndef ETRACE_PTRACE_NAMED_H
#define ETRACE_PTRACE_NAMED_H

#include <stddef.h>

#include "etrace_format.h"

#define MAX_NAMES 256
#define N_SEEN 1024 /* much more than that */

struct named {
	size_t n;
	char *paths[MAX_NAMES]; /* absolute */
	u64 seen[N_SEEN];	/* hashes of the names as they were written, 0: none */
};

u64 named_hash(const char *text, size_t len);

/* Add a name, seen from `cwd`, unless it is there. How many are missed by that: 0 or 1. */
size_t named_add(struct named *named, const char *cwd, const char *name, size_t len);

/* The same for all that a response file names. */
size_t named_add_nested(struct named *named, const char *cwd, const char *text, size_t len);

/* Back to none. */
void named_clear(struct named *named);

#endif /* ETRACE_PTRACE_NAMED_H */
