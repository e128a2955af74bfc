/* SPDX-License-Identifier: Apache-2.0 */
/* The response files of one command, each once. */
#ifndef ETRACE_NAMED_H
#define ETRACE_NAMED_H

#include <linux/limits.h>
#include <stddef.h>
#include <stdint.h>

#define RESPONSE_FILE_BYTES (1 << 20) /* of one that is saved */
#define MAX_NAMES 256
#define N_SEEN 1024 /* much more than that */
#define NAMED_PATH_MAX (2 * PATH_MAX + 2)

/* 2 MB, of which nearly all is never touched. */
struct named {
	size_t n;
	uint64_t seen[N_SEEN]; /* hashes of the names as they were written, 0: none */
	char paths[MAX_NAMES][NAMED_PATH_MAX]; /* absolute */
	char word[RESPONSE_FILE_BYTES + 1];
};

uint64_t named_hash(const char *text, size_t len);

/*
 * Add a name, seen from `cwd` (shorter than PATH_MAX), unless it is there. How many are missed by
 * that: 0 or 1.
 */
size_t named_add(struct named *named, const char *cwd, const char *name, size_t len);

/* The same for all that a response file of at most RESPONSE_FILE_BYTES names. */
size_t named_add_nested(struct named *named, const char *cwd, const char *text, size_t len);

/* Back to none. */
void named_clear(struct named *named);

#endif /* ETRACE_NAMED_H */
