// SPDX-License-Identifier: Apache-2.0
/* The tasks that live, by the number that the kernel's records have for them. */
#include "bpf/trace.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/proc.h"
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

static void drop_root(struct traced *task)
{
	struct root *root = task->root;

	if (root && !--root->refs) {
		close(root->fd);
		free(root);
	}
	task->root = NULL;
}

void traced_remove(struct traced *task)
{
	struct traced **place = bucket_of(task->key);

	while (*place != task)
		place = &(*place)->next;
	*place = task->next;
	n_tasks--;
	drop_root(task);
	execution_free(task);
	free(task->closing);
	free((char *)task->exec_name.text);
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

void traced_take_root(struct traced *task)
{
	char name[PROC_NAME_MAX];
	struct root *root;
	int fd;

	proc_name(name, task->pid, "root");
	fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	drop_root(task);
	root = must_alloc(sizeof(*root));
	*root = (struct root){ 1, fd };
	task->root = root;
}

int traced_root(struct traced *task, const struct record *record)
{
	if (!(record->flags & RECORD_FOREIGN))
		return -1;
	if (!task->root)
		traced_take_root(task);
	return task->root ? task->root->fd : -1;
}

size_t traced_count(void)
{
	return n_tasks;
}
