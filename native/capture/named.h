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

enum naming_state {
	NAMING_PROGRAM, /* the next word is the program */
	NAMING_RUNNER,	/* the program's name comes among the words of a runner */
	NAMING_TOOL,	/* the words are those of a tool that reads response files */
	NAMING_NONE,
};

/*
 * How the words of one command name response files. Begins as zeros. `form` and `group` are numbers
 * of tool_names.h; `skips`: the next word is a value of the runner, `takes_next`: it names a file.
 */
struct naming {
	enum naming_state state;
	const struct runner *runner;
	unsigned char form;
	unsigned char group;
	bool skips;
	bool takes_next;
};

/*
 * Take the next word of a command, from its first one. Return the name of a response file in it,
 * and its length in `len`; NULL when it names none.
 */
const char *naming_next(struct naming *naming, const char *word, size_t *len);

/*
 * Add a name, seen from `cwd` (shorter than PATH_MAX; empty: unknown), unless it is there. Return 1
 * when there is no room for it or it cannot be made absolute, else 0.
 */
size_t named_add(struct named *named, const char *cwd, const char *name, size_t len);

/* Add all names in a response file of at most RESPONSE_FILE_BYTES; return how many had no room. */
size_t named_add_nested(struct named *named, const struct naming *naming, const char *cwd,
			const char *text, size_t len);

void named_clear(struct named *named);

#endif /* ETRACE_CAPTURE_NAMED_H */
