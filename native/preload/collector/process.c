// SPDX-License-Identifier: Apache-2.0
/* Table of the processes by number. A upid is sequence << ETRACE_UPID_PID_BITS | pid. */
#include "process.h"

#include <stdlib.h>
#include <string.h>

#include "capture/options.h"
#include "capture/trace.h"

#define N_BUCKETS 4096

static struct process *buckets[N_BUCKETS];
static s64 last_sequence;

struct process *process_find(pid_t pid)
{
	struct process *process = buckets[(unsigned int)pid % N_BUCKETS];

	while (process && process->pid != pid)
		process = process->next;
	return process;
}

static struct process *create(pid_t pid)
{
	struct process **bucket = &buckets[(unsigned int)pid % N_BUCKETS];
	struct process *process = must_alloc(sizeof(*process));

	memset(process, 0, sizeof(*process));
	process->pid = pid;
	process->next = *bucket;
	*bucket = process;
	return process;
}

void process_prefix(struct process *process, u64 time_ns, struct etrace_prefix *prefix)
{
	if (time_ns < process->last_time)
		time_ns = process->last_time;
	process->last_time = time_ns;
	etrace_prefix_init(prefix, process->upid, process->cpu, time_ns);
}

void process_put(struct process *process, u64 time_ns, enum etrace_event event, const s64 *values,
		 const struct etrace_text *data)
{
	struct etrace_prefix prefix;

	process_prefix(process, time_ns, &prefix);
	trace_put(&prefix, event, values, data);
}

struct process *process_begin(pid_t pid, struct process *parent, u64 time_ns)
{
	struct process *process = process_find(pid);

	if (process && !process->has_ended)
		process_end(process);
	if (!process)
		process = create(pid);
	process->has_ended = false;
	process->upid = (s64)((u64)++last_sequence << ETRACE_UPID_PID_BITS) | pid;
	process->parent = parent ? parent->upid : 0;
	process->began = time_ns;
	process->started = 0;
	process->last_time = time_ns;
	process->cpu = parent ? parent->cpu : 0;
	process->fds = parent && parent->fds ? fd_table_copy(parent->fds) : fd_table_create();
	process->cwd = strdup(parent && parent->cwd ? parent->cwd : "/");
	if (!process->cwd)
		die("out of memory");
	counters.processes++;
	if (parent)
		process_put(parent, time_ns, ETRACE_EV_SCHED_FORK, &process->upid, NULL);
	return process;
}

void process_set_cwd(struct process *process, const char *text, size_t len)
{
	process->cwd = must_realloc(process->cwd, len + 1);
	memcpy(process->cwd, text, len);
	process->cwd[len] = '\0';
}

void process_hear(struct process *process)
{
	free(process->silent);
	process->silent = NULL;
}

void process_end(struct process *process)
{
	process_hear(process);
	process->has_ended = true;
	fd_table_drop(process->fds);
	process->fds = NULL;
	free(process->cwd);
	process->cwd = NULL;
	free(process->intent);
	process->intent = NULL;
}

void process_for_each(void (*visit)(struct process *process))
{
	struct process *process;
	size_t i;

	for (i = 0; i < N_BUCKETS; i++)
		for (process = buckets[i]; process; process = process->next)
			if (!process->has_ended)
				visit(process);
}
