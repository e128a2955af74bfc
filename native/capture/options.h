/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options and counters of etrace-ptrace and etrace-preload. Each is one process whose loop is one
 * thread, so each part keeps its state in static variables; what several parts need is here.
 */
#ifndef ETRACE_CAPTURE_OPTIONS_H
#define ETRACE_CAPTURE_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "etrace_format.h"

#include "capture/program.h"

struct options {
	const char *trace_path;
	const char *stats_path;
	const char *responses_path; /* for what response files held, or NULL */
	const char *libraries; /* the folder of those to preload; NULL: beside this program */
	bool can_follow; /* what runs already: instead of a command there may be one of these two */
	pid_t pid; /* of a process */
	const char *cgroup; /* the directory of a control group, version 2 */
	int status_fd; /* -1 when not asked for */
	int buffer_kib; /* of the kernel; a program that has one sets its default before options_parse() */
	int environment; /* these are set by getopt_long() */
	int mounts;
	int thread_names;
	int wait_all;
	int summary; /* print a summary at the end */
	int usage; /* print what processes used */
	int keeps_stderr; /* print what processes write to standard error */
	int keeps_stdout; /* and to standard output */
	int eager; /* write events soon, for who reads them meanwhile */
	int substitute; /* where this program is refused, the next one takes over: bpf, ptrace, preload */
	char **command;
};

/* Everything that the stats file and the closing messages report. */
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
	u64 privileged; /* programs that the user may not watch */
	u64 listeners; /* seccomp listeners, for whose tasks every call stops */
	u64 untraced; /* tasks or programs that the trace lacks with all that they started */
	u64 foreign_abi_calls; /* calls of a system call table that the filter does not know */
	u64 refused_ptrace;
	u64 changed_arguments; /* calls whose arguments another task changed meanwhile */
};

extern struct options options;
extern struct counters counters;

/* Whether what runs already is traced, and no command. */
static inline bool options_follow(void)
{
	return options.pid > 0 || options.cgroup;
}

/* Fill the options of `program`; --version prints what its name and version are followed by. */
void options_parse(int argc, char **argv, const char *program, const char *(*about)(void));

#endif /* ETRACE_CAPTURE_OPTIONS_H */
