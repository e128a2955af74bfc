// SPDX-License-Identifier: Apache-2.0
/* The tasks that live, by the number that the kernel's records have for them. */
#include "bpf/trace.h"

#include <stdlib.h>
#include <string.h>

#include "capture/options.h"
#include "capture/program.h"

#define N_BUCKETS 4096

static struct traced *buckets[N_BUCKETS];
static size_t n_tasks;
static s64 last_number;

static struct traced **bucket_of(u64 key)
{
	return &buckets[(key * 0x9e3779b97f4a7c15u) >> 52];
}

struct traced *traced_find(u64 key)
{
	struct traced *task;

	for (task = *bucket_of(key); task; task = task->next)
		if (task->key == key)
			return task;
	return NULL;
}

struct traced *traced_add(u64 key, pid_t pid, u64 leader)
{
	struct traced **bucket = bucket_of(key);
	struct traced *task = traced_find(key);

	if (task)
		traced_remove(task);
	task = must_alloc(sizeof(*task));
	memset(task, 0, sizeof(*task));
	task->key = key;
	task->pid = pid;
	task->leader = leader;
	task->upid = ++last_number << ETRACE_UPID_PID_BITS | pid;
	task->next = *bucket;
	*bucket = task;
	n_tasks++;
	if (key == leader)
		counters.processes++;
	else
		counters.threads++;
	return task;
}

void traced_remove(struct traced *task)
{
	struct traced **place = bucket_of(task->key);

	while (*place != task)
		place = &(*place)->next;
	*place = task->next;
	n_tasks--;
	execution_free(task);
	free(task->closing);
	free(task);
}

void traced_for_each(void (*visit)(struct traced *task))
{
	size_t i;

	for (i = 0; i < N_BUCKETS; i++) {
		struct traced *task, *next;

		for (task = buckets[i]; task; task = next) {
			next = task->next;
			visit(task);
		}
	}
}

size_t traced_count(void)
{
	return n_tasks;
}
