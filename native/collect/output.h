/* SPDX-License-Identifier: Apache-2.0 */
/* The trace being written: whole events, in the order they are put. */
#ifndef ETRACE_COLLECT_OUTPUT_H
#define ETRACE_COLLECT_OUTPUT_H

#include "etrace_format.h"

/* Create the file or take the descriptor that the options name; ends the program with a reason. */
void output_open(void);

/* The first line of a trace. */
void output_put_initial_cwd(const char *cwd);

/*
 * Events that belong together: begin, put any text into what output_text() returns, end; they came
 * from `n_records` records. When the
 * end says false there was not room enough: put all of it once more. output_cancel() instead of
 * the end leaves it out.
 */
void output_begin(void);
struct etrace_out *output_text(void);
bool output_end(size_t n_events, size_t n_records);
void output_cancel(void);

/* Text that was formatted elsewhere: a line is an event, a part of one none. */
void output_put_copy(const char *text, size_t len, size_t n_events);

/* Hand what is buffered to the kernel; with `now` false only if it is much or old. */
void output_flush(bool now);

/* Its descriptor. */
int output_fd(void);

/* Flush and close. */
void output_close(void);

/* The error that ended writing, or 0. */
int output_error(void);

#endif /* ETRACE_COLLECT_OUTPUT_H */
