/* SPDX-License-Identifier: Apache-2.0 */
/* The trace being written, and what is gathered for its end and for the file beside it. */
#ifndef ETRACE_CAPTURE_TRACE_H
#define ETRACE_CAPTURE_TRACE_H

#include <stdbool.h>

#include "etrace_format.h"

/* ---- trace.c: whole events, in the order they are put ---- */

/* Create the file or end the program. */
void trace_open(const char *path);

/* The first line, with the working directory. */
void trace_put_first_line(void);

/* One event with its strings. */
void trace_put(const struct etrace_prefix *prefix, enum etrace_event event, const s64 *values,
	       const struct etrace_text *data);

/* An executed program with its arguments; `data` are the strings of New_proc. */
void trace_put_execution(const struct etrace_prefix *prefix, const struct etrace_text *data,
			 const struct etrace_text *arguments, size_t n);

/*
 * An event of several pieces: begin, put any pieces into what trace_piece() returns, end. When
 * trace_end() returns false there was not enough room: put all of it once more.
 */
void trace_begin(void);
struct etrace_out *trace_piece(void);
bool trace_end(void);

/* Write the buffer. */
void trace_flush(void);

/* Flush and close: no event is written from here on. */
void trace_close(void);

bool trace_is_open(void);

/* The error that ended writing, or 0. */
int trace_error(void);

/* ---- environment.c ---- */

/* Whether what this program was started with is recorded: always of make and ninja. */
bool environment_is_wanted(const struct etrace_text *program);

/* A program was started with these variables; secrets are hidden unless `--env` asked for all. */
void environment_add(s64 upid, const struct etrace_text *variables, size_t n);

/*
 * Print every variable with the processes that had it, and forget them: at the end of the trace, and
 * whenever they take much memory.
 */
void environment_put(void);

/* ---- saved.c: the response files that were read, for `.nfsdb.rsp` (docs/compilations.md) ---- */

/* Keep a file of a command for the side file; false when there are too many. */
bool saved_add(s64 upid, const char *path, size_t path_len, const char *text, size_t len);

/* Write the side file, unless it would be empty. */
void saved_put(void);

#endif /* ETRACE_CAPTURE_TRACE_H */
