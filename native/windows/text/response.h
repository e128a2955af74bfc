/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Response files of a command line: what they hold, those that they name in their place. Which
 * options name one is a table: `@FILE` of most tools, `--via FILE` of Arm's, `-f FILE` of IAR's.
 */
#ifndef WINDOWS_RESPONSE_H
#define WINDOWS_RESPONSE_H

#include "buffer.h"
#include "command_line.h"

#define RESPONSE_MAX_DEPTH 32
#define RESPONSE_MAX_FILES 2000
#define RESPONSE_MAX_BYTES (16u << 20) /* of one command */
#define RESPONSE_MAX_FILE_BYTES (8u << 20)

/* How an option and the file's name are joined. */
enum response_form {
	RESPONSE_ATTACHED = 1, /* @FILE */
	RESPONSE_SPACE = 2, /* --via FILE */
	RESPONSE_EQUAL = 4, /* --via=FILE */
};

/* `option` of the programs whose names `programs` has, globs between commas. */
struct response_rule {
	const char *programs;
	const char *option;
	unsigned int forms;
};

struct response_rules {
	struct response_rule *rules;
	size_t n;
};

extern const struct response_rules response_default;

/* Append what a file holds, as UTF-8; false when it cannot be read. `path` is absolute. */
typedef bool response_read(void *context, struct text path, struct buffer *content);

struct response_source {
	response_read *read;
	void *context;
};

/*
 * Append what all response files of `arguments` hold, a newline between them. False when there is
 * none that can be read.
 */
bool response_text(struct buffer *out, const struct words *arguments, struct text directory,
		   const struct response_rules *rules, struct response_source source);

/* Append `arguments` with the words of the files in place of their names. */
void response_expand(struct words *out, const struct words *arguments, struct text directory,
		     const struct response_rules *rules, struct response_source source);

/* How the response files of a program quote. */
enum quoting response_quoting(struct text program);

#endif /* WINDOWS_RESPONSE_H */
