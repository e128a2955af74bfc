/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all parts of the tracer share: options, counters and their lifetimes. The tracer is one
 * process with one thread (ptrace binds a task to the thread that attached it), so each part keeps
 * its state in static variables; what several parts need is here.
 */
#ifndef ETRACE_PTRACE_TRACER_H
#define ETRACE_PTRACE_TRACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common.h"
#include "etrace_format.h"

#define STATUS_NOT_EXECUTABLE 126
#define STATUS_NOT_FOUND 127

struct options {
	const char *trace_path;
	const char *stats_path;
	const char *responses_path; /* for what response files held, or NULL */
	const char *libraries; /* the folder of those to preload; NULL: beside this program */
	int status_fd; /* -1 when not asked for */
	int environment; /* these are set by getopt_long() */
	int mounts;
	int thread_names;
	int wait_all;
	int summary; /* print a summary at the end */
	int usage; /* print what processes used */
	int substitute; /* where ptrace is refused, etrace-preload takes over */
	char **command;
};

/* Everything the stats file and the closing messages say. */
struct counters {
	u64 events;
	u64 lines;
	u64 bytes;
	u64 lost; /* events that could not be written */
	u64 processes; /* tasks that are not threads */
	u64 threads;
	u64 executions;
	u64 opens;
	u64 stops; /* of the traced tasks, for any reason */
	u64 unread_strings; /* strings of a traced task that could not be read */
	u64 unresolved_paths; /* open files whose path /proc did not give */
	u64 unlisted_descriptors; /* executions whose close-on-exec closes are unknown */
	u64 response_files; /* that were read */
	u64 missed_response_files; /* gone before they were read, or too large */
	u64 orphans; /* tasks whose parent died before it could name them */
	u64 io_uring_setups;
	u64 listeners; /* seccomp listeners, for whose tasks every call stops */
	u64 untraced; /* tasks that were made beside the tracer */
	u64 foreign_abi_calls; /* calls of a system call table that the filter does not know */
	u64 refused_ptrace;
	u64 env_dropped; /* executions whose environment found no memory */
};

extern struct options options;
extern struct counters counters;

#endif /* ETRACE_PTRACE_TRACER_H */
