/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command line of Windows -> arguments, as Microsoft's C library cuts it: "Parsing C command-line
 * arguments" (learn.microsoft.com), and since Visual C++ 2008 `""` inside of quotes is a quote.
 * A program that reads its command line itself (cmd.exe) may cut it otherwise.
 */
#ifndef WINDOWS_COMMAND_LINE_H
#define WINDOWS_COMMAND_LINE_H

#include "buffer.h"

void command_line_split(struct words *out, struct text line);
/* Where argument `i` begins: the length of the line when it has fewer. */
size_t command_line_offset(struct text line, size_t i);

/* How a response file quotes. */
enum quoting {
	QUOTING_WINDOWS, /* as a command line; lines are blanks */
	QUOTING_GNU, /* libiberty's buildargv: ' and " group, a backslash makes the next byte literal */
};

/*
 * The next word of a response file: appended to `word`, `*at` after it. False at the end. `*start`
 * is where it begins.
 */
bool next_word(struct text text, enum quoting quoting, size_t *at, size_t *start,
	       struct buffer *word);

#endif /* WINDOWS_COMMAND_LINE_H */
