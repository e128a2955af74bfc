// SPDX-License-Identifier: Apache-2.0
/*
 * Table of the traced tasks by kernel tid. A upid is sequence << ETRACE_UPID_PID_BITS | tid, so
 * that a tid which the kernel uses again gives another upid.
 */
#include "task/task.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "capture/options.h"

#define N_BUCKETS 4096 /* a power of two; pids are handed out in sequence and spread evenly */

static struct task *buckets[N_BUCKETS];
static size_t n_tasks;
static size_t n_parked;
static size_t n_threads;
static s64 last_sequence;

static struct task **bucket_of(pid_t tid)
{
	return &buckets[(unsigned int)tid % N_BUCKETS];
}

struct task *task_find(pid_t tid)
{
	struct task *task;

	for (task = *bucket_of(tid); task; task = task->next)
		if (task->tid == tid)
			return task;
	return NULL;
}

static void link_task(struct task *task)
{
	struct task **bucket = bucket_of(task->tid);

	task->next = *bucket;
	*bucket = task;
}

static void unlink_task(struct task *task)
{
	struct task **at = bucket_of(task->tid);

	while (*at != task)
		at = &(*at)->next;
	*at = task->next;
}

struct task *task_create(pid_t tid)
{
	struct task *task = must_alloc(sizeof(*task));

	memset(task, 0, sizeof(*task));
	task->tid = tid;
	task->tgid = tid;
	task->rseq_ask_at = 1;
	link_task(task);
	n_tasks++;
	return task;
}

static bool is_parked(enum task_state state)
{
	return state == TASK_PARKED || state == TASK_ENDED_EARLY;
}

void task_set_state(struct task *task, enum task_state state)
{
	n_parked -= is_parked(task->state);
	n_parked += is_parked(state);
	task->state = state;
}

void task_remove(struct task *task)
{
	task_set_state(task, TASK_RUNNING);
	n_threads -= task->tid != task->tgid;
	unlink_task(task);
	n_tasks--;
	names_clear(&task->names);
	free(task->exec_path);
	free(task->covered);
	fd_table_drop(task->fds);
	fs_drop(task->fs);
	free(task);
}

static s64 next_upid(pid_t tid)
{
	return (s64)((u64)++last_sequence << ETRACE_UPID_PID_BITS) | tid;
}

static void inherit(struct task *task, const struct task *parent, u64 clone_flags)
{
	task->cpu = parent->cpu;
	task->is_watched = parent->is_watched;
	task->is_narrow = parent->is_narrow;
	task->argument_changed = parent->argument_changed;
	task->argument = parent->argument;
	task->fds = clone_flags & CLONE_FILES ? fd_table_share(parent->fds)
					      : fd_table_copy(parent->fds);
	if (clone_flags & CLONE_FS) {
		task->fs = parent->fs;
		task->fs->refs++;
	} else {
		task->fs = fs_copy(parent->fs);
	}
	if (clone_flags & CLONE_NEWNS)
		task->fs->foreign = true;
	if (clone_flags & CLONE_THREAD) {
		task->tgid = parent->tgid;
		n_threads++;
	}
	task->borrows_memory = clone_flags & CLONE_VM && !(clone_flags & CLONE_THREAD);
	if (!(clone_flags & CLONE_VM)) /* the kernel drops it where memory is shared */
		task->rseq = parent->rseq;
}

void task_begin(struct task *task, const struct task *parent, u64 clone_flags)
{
	task->upid = next_upid(task->tid);
	if (parent) {
		inherit(task, parent, clone_flags);
	} else {
		task->fds = fd_table_create();
		task->fs = fs_create();
	}
	if (clone_flags & CLONE_THREAD)
		counters.threads++;
	else
		counters.processes++;
}

size_t task_count(void)
{
	return n_tasks;
}

size_t task_parked_count(void)
{
	return n_parked;
}

size_t task_thread_count(void)
{
	return n_threads;
}

void task_renumber(struct task *task, pid_t tid)
{
	unlink_task(task);
	n_threads -= task->tid != task->tgid;
	task->tid = tid;
	task->tgid = tid;
	link_task(task);
}

void task_for_each(void (*visit)(struct task *task, void *context), void *context)
{
	size_t i;

	for (i = 0; i < N_BUCKETS; i++) {
		struct task *task = buckets[i];

		while (task) {
			struct task *next = task->next;

			visit(task, context);
			task = next;
		}
	}
}

bool task_sees_writes(const struct task *task)
{
	return options.keeps_stderr && !options.keeps_stdout &&
	       fd_table_leads_to_error(task->fds, STDOUT_FILENO);
}

void task_unshare_fds(struct task *task)
{
	struct fd_table *own;

	if (task->fds->refs == 1)
		return;
	own = fd_table_copy(task->fds);
	fd_table_drop(task->fds);
	task->fds = own;
}

void task_unshare_fs(struct task *task)
{
	struct fs_state *own;

	if (task->fs->refs == 1)
		return;
	own = fs_copy(task->fs);
	fs_drop(task->fs);
	task->fs = own;
}

void names_clear(struct names *names)
{
	free(names->from);
	free(names->to);
	free(names->type);
	free(names->given);
	memset(names, 0, sizeof(*names));
}

struct fs_state *fs_create(void)
{
	struct fs_state *fs = must_alloc(sizeof(*fs));

	memset(fs, 0, sizeof(*fs));
	fs->refs = 1;
	return fs;
}

struct fs_state *fs_copy(const struct fs_state *from)
{
	struct fs_state *fs = fs_create();

	fs->foreign = from->foreign;
	fs->generation = from->generation;
	fs->root = from->root ? strdup(from->root) : NULL;
	fs->cwd = from->cwd ? strdup(from->cwd) : NULL;
	if (!fs->root || !fs->cwd)
		fs->generation = 0;
	return fs;
}

void fs_drop(struct fs_state *fs)
{
	if (!fs || --fs->refs)
		return;
	free(fs->root);
	free(fs->cwd);
	free(fs);
}

/* ---- how a task continues ---- */

/* Bind a task to this core. False when it is not allowed there, or nowhere else. */
static bool bind_here(const struct task *task, cpu_set_t *own)
{
	int cpu = sched_getcpu();
	cpu_set_t here;

	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(task->tid, sizeof(*own), own) < 0)
		return false;
	if (!CPU_ISSET(cpu, own) || CPU_COUNT(own) == 1)
		return false;
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	return sched_setaffinity(task->tid, sizeof(here), &here) == 0;
}

/* Twice the same task: the build runs one task at a time, and it and the tracer take turns. */
static bool takes_turns(const struct task *task)
{
	static pid_t last;
	bool same = last == task->tid;

	last = task->tid;
	return same && task->call != CALL_AFFINITY && !task->shows_cores;
}

void core_resume(const struct task *task, int signal)
{
	bool sees_exit = task->call || task->is_watched || task_sees_writes(task);
	cpu_set_t own;
	bool is_bound = takes_turns(task) && bind_here(task, &own);

	ptrace(sees_exit ? PTRACE_SYSCALL : PTRACE_CONT, task->tid, 0, signal);
	if (is_bound)
		sched_setaffinity(task->tid, sizeof(own), &own); /* or it has ended */
}

void core_unbind_child(const struct task *parent, const struct task *child)
{
	cpu_set_t own;
	cpu_set_t inherited;

	if (sched_getaffinity(child->tid, sizeof(inherited), &inherited) < 0 ||
	    CPU_COUNT(&inherited) > 1)
		return;
	if (sched_getaffinity(parent->tid, sizeof(own), &own) == 0 && CPU_COUNT(&own) > 1)
		sched_setaffinity(child->tid, sizeof(own), &own);
}
