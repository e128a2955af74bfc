/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that read response files, and the response files of one command, each once. */
#ifndef ETRACE_CAPTURE_NAMED_H
#define ETRACE_CAPTURE_NAMED_H

#include <linux/limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESPONSE_FILE_BYTES (1 << 20) /* of one that is saved */
#define MAX_NAMES 256
#define N_SEEN 1024 /* much more than that */
#define NAMED_PATH_MAX (2 * PATH_MAX + 2)

/* 2 MB, nearly all of it never touched. */
struct named {
	size_t n;
	uint64_t seen[N_SEEN]; /* hashes of the names as written; 0: free */
	char paths[MAX_NAMES][NAMED_PATH_MAX]; /* absolute */
	char word[RESPONSE_FILE_BYTES + 1];
};

/*
 * Whether a program's name of `len` bytes, less a version, is a tool's, or ends in one after the
 * prefix of a cross tool.
 */
bool tool_is_named(const char *program, size_t len);

/*
 * Add a name, seen from `cwd` (shorter than PATH_MAX; empty: unknown), unless it is there. Return 1
 * when there is no room for it or it cannot be made absolute, else 0.
 */
size_t named_add(struct named *named, const char *cwd, const char *name, size_t len);

/* Add all names in a response file of at most RESPONSE_FILE_BYTES; return how many had no room. */
size_t named_add_nested(struct named *named, const char *cwd, const char *text, size_t len);

void named_clear(struct named *named);

#endif /* ETRACE_CAPTURE_NAMED_H */
