/* SPDX-License-Identifier: Apache-2.0 */
/* The trace being written: whole events, in the order they are put. */
#ifndef ETRACE_COLLECT_WRITER_H
#define ETRACE_COLLECT_WRITER_H

#include "etrace_format.h"

/* Create the file or take the descriptor that the options name; ends the program with a reason. */
void writer_open(void);

/* The first line of a trace. */
void writer_put_initial_cwd(const char *cwd);

/*
 * Events that belong together: begin, put any text into what writer_text() returns, end; they came
 * from `n_records` records. When the
 * end says false there was not room enough: put all of it once more. writer_cancel() instead of
 * the end leaves it out.
 */
void writer_begin(void);
struct etrace_out *writer_text(void);
bool writer_end(size_t n_events, size_t n_records);
void writer_cancel(void);

/* Text that was formatted elsewhere: a line is an event, a part of one none. */
void writer_put_copy(const char *text, size_t len, size_t n_events);

/* Hand what is buffered to the kernel; with `now` false only if it is much or old. */
void writer_flush(bool now);

/* Its descriptor. */
int writer_fd(void);

/* Flush and close. */
void writer_close(void);

/* The error that ended writing, or 0. */
int writer_error(void);

#endif /* ETRACE_COLLECT_WRITER_H */
