/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of the build, as far as records tell. */
#ifndef ETRACE_PRELOAD_PROCESS_H
#define ETRACE_PRELOAD_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "etrace_format.h"
#include "task/fd_table.h"
#include "ring_file.h"

struct process {
	struct process *next; /* in its bucket */
	pid_t pid;
	s64 upid;
	s64 parent; /* upid, or 0 */
	bool has_ended;
	u64 last_time;
	u32 cpu;
	char *cwd;
	struct fd_table *fds;
	char *untold; /* the program was loaded and has told nothing since: its path */
	struct event *intent; /* a program is about to be executed; what tells whether it was may follow */
};

/* The process of that number that was made last; NULL when there is none. */
struct process *process_find(pid_t pid);

/* A new process, with what it inherits. Prints the parent's SchedFork. */
struct process *process_begin(pid_t pid, struct process *parent, u64 time_ns);

void process_set_cwd(struct process *process, const char *text, size_t len);

/* What it does is told. */
void process_hear(struct process *process);

/* Its end; its number may come again. */
void process_end(struct process *process);

/* Of all that are left. */
void process_for_each(void (*visit)(struct process *process));

/* Print one event of a process. Times of one process do not go back. */
void process_put(struct process *process, u64 time_ns, enum etrace_event event, const s64 *values,
		 const struct etrace_text *data);

/* The prefix of its next event. */
void process_prefix(struct process *process, u64 time_ns, struct etrace_prefix *prefix);

#endif /* ETRACE_PRELOAD_PROCESS_H */
