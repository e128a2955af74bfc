/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_REPORT_H
#define ETRACE_PTRACE_REPORT_H

#include <stdbool.h>

#include "etrace_format.h"

enum ending {
	ENDING_COMMAND, /* with the command: by its exit or by a signal */
	ENDING_INTERRUPTED, /* a signal ended the build */
	ENDING_TRACER, /* the tracer was ended */
};

/* The capture begins. */
void report_start(void);

/* Since then. */
u64 report_duration_ns(void);

/* One line about the progress to --status-fd. */
void report_status(void);

/* The capture ended: warnings on stderr, stats file. */
void report_end(enum ending ending, int wait_status);

/* Tasks that outlive the command. */
void report_survivors(void);

#endif /* ETRACE_PTRACE_REPORT_H */
