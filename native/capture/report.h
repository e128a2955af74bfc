/* SPDX-License-Identifier: Apache-2.0 */
/* What a capture reports about itself: warnings, progress, the stats file. */
#ifndef ETRACE_CAPTURE_REPORT_H
#define ETRACE_CAPTURE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "etrace_format.h"

/* The capture begins. */
void report_start(void);

/* Since then. */
u64 report_duration_ns(void);

/* A message on stderr and in the stats. */
void report_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Warn of `n` things that are not in the trace, when there are any. */
void report_warn_count(u64 n, const char *one, const char *many, const char *what);

/* The same of names that could not be resolved. */
void report_warn_unresolved(u64 n);

/* Whether a line of progress is due: about twice a second, whatever the ticks of the program. */
bool report_is_due(void);

/* Write a line to a descriptor, or nothing while its reader does not read; false when nobody can. */
bool report_put_line(int fd, const char *text, size_t len);

struct report_count {
	const char *key;
	u64 value;
};

/* Members of the stats, each after a comma. */
void report_put_counts(FILE *file, const struct report_count *counts, size_t n);
void report_put_text(FILE *file, const char *key, const char *text);

/* A JSON object: the backend, the members that `put` puts, and the warnings. */
void report_put_stats(FILE *file, const char *backend, void (*put)(FILE *file));

#endif /* ETRACE_CAPTURE_REPORT_H */
