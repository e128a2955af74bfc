// SPDX-License-Identifier: Apache-2.0
/* The processes of the build by process id, and their variables by text. */
#define _CRT_RAND_S
#include "trace/process.h"

#include <stdlib.h>
#include <string.h>

#include "text/lines.h"

#define PID_STEP 4 /* ids are multiples of it */
#define FIRST_SLOTS 1024

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

struct variable {
	struct buffer text;
	struct buffer upids; /* int64_t */
};

static size_t slot_of(const struct environment *environment, struct text text)
{
	size_t slot = (size_t)keyed_hash(&environment->key, text.data, text.len) &
		      (environment->n_slots - 1);

	while (environment->slots[slot]) {
		struct text other = buffer_text(&environment->slots[slot]->text);

		if (other.len == text.len && !memcmp(other.data, text.data, text.len))
			break;
		slot = (slot + 1) & (environment->n_slots - 1);
	}
	return slot;
}

static void grow(struct environment *environment)
{
	struct environment old = *environment;
	size_t n = old.n_slots ? old.n_slots * 2 : FIRST_SLOTS;

	if (old.n_slots > old.n_variables * 2)
		return;
	environment->slots = must_realloc(NULL, n * sizeof(*environment->slots));
	memset(environment->slots, 0, n * sizeof(*environment->slots));
	environment->n_slots = n;
	for (size_t i = 0; i < old.n_slots; i++) {
		if (old.slots[i])
			environment->slots[slot_of(environment, buffer_text(&old.slots[i]->text))] =
				old.slots[i];
	}
	free(old.slots);
}

static void make_key(struct hash_key *key)
{
	unsigned int parts[sizeof(*key) / sizeof(unsigned int)] = { 0 };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		rand_s(&parts[i]);
	memcpy(key, parts, sizeof(*key));
}

void environment_add(struct environment *environment, int64_t upid, const struct words *variables)
{
	size_t n = words_count(variables);

	if (!environment->n_slots)
		make_key(&environment->key);
	for (size_t i = 0; i < n; i++) {
		struct text text = words_at(variables, i);
		size_t slot;

		grow(environment);
		slot = slot_of(environment, text);
		if (!environment->slots[slot]) {
			struct variable *variable = must_realloc(NULL, sizeof(*variable));

			*variable = (struct variable){ 0 };
			buffer_add_text(&variable->text, text);
			environment->slots[slot] = variable;
			environment->n_variables++;
			environment->n_bytes += sizeof(*variable) + text.len;
		}
		buffer_add(&environment->slots[slot]->upids, &upid, sizeof(upid));
		environment->n_bytes += sizeof(upid);
	}
}

bool environment_next(const struct environment *environment, size_t *at, uint64_t time_ns,
		      struct buffer *out)
{
	for (; *at < environment->n_slots; ++*at) {
		const struct variable *variable = environment->slots[*at];

		if (!variable)
			continue;
		lines_variable(out, (const int64_t *)(const void *)variable->upids.data,
			       variable->upids.len / sizeof(int64_t), time_ns,
			       buffer_text(&variable->text));
		++*at;
		return true;
	}
	return false;
}

void environment_free(struct environment *environment)
{
	for (size_t i = 0; i < environment->n_slots; i++) {
		if (!environment->slots[i])
			continue;
		buffer_free(&environment->slots[i]->text);
		buffer_free(&environment->slots[i]->upids);
		free(environment->slots[i]);
	}
	free(environment->slots);
	*environment = (struct environment){ 0 };
}
