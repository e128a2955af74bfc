/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PRELOAD_REPORT_H
#define ETRACE_PRELOAD_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "etrace_format.h"

void report_start(void);
u64 report_duration_ns(void);

/* A message on stderr and in the stats file. */
void report_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line about the progress to --status-fd. */
void report_status(size_t n_live);

/* Programs that the trace lacks with all that they did and started, as far as they are known. */
u64 report_untraced(void);

/* The capture ended: warnings, stats file. */
void report_end(bool is_interrupted, int wait_status);

#endif /* ETRACE_PRELOAD_REPORT_H */
