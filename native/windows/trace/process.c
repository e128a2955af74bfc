// SPDX-License-Identifier: Apache-2.0
/* The processes of the build by process id. */
#include "trace/process.h"

#include <stdlib.h>

#include "text/lines.h"

#define PID_STEP 4 /* ids are multiples of it */

static struct process *const *bucket_of(const struct processes *processes, unsigned long pid)
{
	return &processes->buckets[pid / PID_STEP % PROCESS_BUCKETS];
}

struct process *processes_find(const struct processes *processes, unsigned long pid)
{
	struct process *process = *bucket_of(processes, pid);

	while (process && process->pid != pid)
		process = process->next;
	return process;
}

struct process *processes_add(struct processes *processes, unsigned long pid)
{
	struct process *process = processes_find(processes, pid);

	if (!process) {
		struct process **bucket = (struct process **)bucket_of(processes, pid);

		process = must_realloc(NULL, sizeof(*process));
		*process = (struct process){ .pid = pid, .next = *bucket };
		*bucket = process;
	}
	processes_end(processes, process);
	process->upid = lines_upid(++processes->n, pid);
	process->is_alive = true;
	process->has_broken = false;
	process->has_broken32 = false;
	process->name.len = 0;
	processes->n_alive++;
	return process;
}

void processes_end(struct processes *processes, struct process *process)
{
	if (process->is_alive)
		processes->n_alive--;
	process->is_alive = false;
}

void processes_each_alive(const struct processes *processes, void (*call)(const struct process *))
{
	for (size_t i = 0; i < PROCESS_BUCKETS; i++) {
		for (const struct process *p = processes->buckets[i]; p; p = p->next) {
			if (p->is_alive)
				call(p);
		}
	}
}

void processes_free(struct processes *processes)
{
	for (size_t i = 0; i < PROCESS_BUCKETS; i++) {
		while (processes->buckets[i]) {
			struct process *process = processes->buckets[i];

			processes->buckets[i] = process->next;
			buffer_free(&process->name);
			free(process);
		}
	}
}
