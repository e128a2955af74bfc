/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of the build by process id. The last one with an id counts: ids are used again. */
#ifndef WINDOWS_PROCESS_H
#define WINDOWS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "text/buffer.h"

struct process {
	unsigned long pid;
	int64_t upid;
	bool is_alive;
	bool has_broken; /* the loader's breakpoint was there */
	bool has_broken32; /* that of the 32-bit loader */
	struct buffer name;
	struct process *next; /* in its bucket */
};

#define PROCESS_BUCKETS 4096

struct processes {
	struct process *buckets[PROCESS_BUCKETS];
	uint64_t n; /* all that ever were */
	uint64_t n_alive;
};

/* A new process, in place of an earlier one with the same id. */
struct process *processes_add(struct processes *processes, unsigned long pid);
struct process *processes_find(const struct processes *processes, unsigned long pid);
void processes_end(struct processes *processes, struct process *process);
/* Call for each process that is alive. */
void processes_each_alive(const struct processes *processes, void (*call)(const struct process *));
void processes_free(struct processes *processes);

#endif /* WINDOWS_PROCESS_H */
