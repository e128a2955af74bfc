/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of the build, as far as records show. */
#ifndef ETRACE_PRELOAD_PROCESS_H
#define ETRACE_PRELOAD_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "etrace_format.h"
#include "capture/capture.h"
#include "capture/fd_table.h"
#include "records.h"

struct process {
	struct process *next; /* in its bucket */
	pid_t pid;
	s64 upid;
	s64 parent; /* upid, or 0 */
	bool has_ended;
	u64 began; /* ns, as all times */
	u64 started; /* when its last program with the library was loaded */
	u64 last_time;
	u32 cpu;
	char *cwd;
	struct fd_table *fds;
	char *silent; /* the path of a program that was loaded and has recorded nothing since */
	struct event *intent; /* a program is about to be executed; a later record may show that it was not */
};

/* The process of that number that was made last; NULL when there is none. */
struct process *process_find(pid_t pid);

/*
 * A new process, with what it inherits. Prints the parent's SchedFork: what the parent was about to
 * execute must have been settled.
 */
struct process *process_begin(pid_t pid, struct process *parent, u64 time_ns);

/* An empty one is not known: its path is longer than any call can name. */
void process_set_cwd(struct process *process, const char *text, size_t len);

/* Its program records what it does. */
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

/* ---- execution.c: executed programs -> New_proc ---- */

/* A program was loaded with the library. */
void execution_put_start(struct process *process, struct event *event);

/* What a response file of a compiler holds. */
void execution_put_response(const struct process *process, const struct event *event);

/* A program is about to be executed; later records show whether it was. Takes the event. */
void execution_expect(struct process *process, struct event *event);

/* It was not. */
void execution_forget(struct process *process);

/* It was, without the library: nothing else followed. */
void execution_settle(struct process *process);

/* Objects that the dynamic linker opened later. */
void execution_put_objects(struct process *process, struct event *event);

/* ---- events.c: other records ---- */

/* Print the events of a record, in the order of time. Frees it. */
void events_put(struct event *event);

/* The capture ends: what is known of the processes that are left. */
void events_settle(void);

/*
 * How many processes ended and nobody learned how; restricted their own calls; began in another PID
 * namespace.
 */
u64 events_unknown_ends(void);
u64 events_confined(void);
u64 events_left(void);

/* ---- build.c ---- */

/* Start the command with the library. Returns 0, or the exit status when it cannot be started. */
int build_start(void);

#endif /* ETRACE_PRELOAD_PROCESS_H */
