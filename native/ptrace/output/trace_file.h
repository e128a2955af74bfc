/* SPDX-License-Identifier: Apache-2.0 */
/* The trace being written: whole events, in the order they are put. */
#ifndef ETRACE_PTRACE_TRACE_FILE_H
#define ETRACE_PTRACE_TRACE_FILE_H

#include "etrace_format.h"

/* Create the file or end the program. */
void trace_open(const char *path);

/* The first line. */
void trace_put_initial_cwd(const char *cwd);

/* One event with its strings. */
void trace_put(const struct etrace_prefix *prefix, enum etrace_event event, const s64 *values,
	       const struct etrace_text *data);

/*
 * An event of several pieces: begin, put any pieces into what trace_piece() returns, end. When the
 * end says false there was not room enough: put all of it once more.
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

#endif /* ETRACE_PTRACE_TRACE_FILE_H */
