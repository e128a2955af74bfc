/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the processes of the build: which there are, and their environments. */
#ifndef WINDOWS_PROCESS_H
#define WINDOWS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "etrace_hash.h"

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

/* By process id; the last one with an id counts, because ids are used again. */
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

/* Which process had which variable: builds repeat them, so each variable is kept once. */
struct environment {
	struct variable **slots; /* a power of two of them */
	size_t n_slots;
	size_t n_variables;
	size_t n_bytes; /* of variables and of whose they are */
	struct hash_key key;
};

void environment_add(struct environment *environment, int64_t upid, const struct words *variables);
/* Append the event lines of the next variable; false after the last. `*at` begins as 0. */
bool environment_next(const struct environment *environment, size_t *at, uint64_t time_ns,
		      struct buffer *out);
/* Forget all variables. */
void environment_free(struct environment *environment);

#endif /* WINDOWS_PROCESS_H */
