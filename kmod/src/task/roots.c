// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first tasks of a session: a process, what it has started, or a cgroup. Walks the list of all
 * tasks under RCU; the probes of fork and exit are there before, so that nobody slips through.
 * Process context.
 */
#include <linux/sched/signal.h>

#include "task/roots.h"
#include "task/set.h"

/* The named thread may have ended while others live: then the first of these is used. */
int etrace_roots_add_process(struct task_struct *task, u64 *upid)
{
	const struct etrace_task *entry, *named;
	struct task_struct *thread;

	rcu_read_lock();
	named = etrace_task_add(task);
	for_each_thread(task, thread) {
		entry = etrace_task_add(thread);
		if (!named)
			named = entry;
	}
	if (named)
		*upid = (u64)named->origin.upid;
	rcu_read_unlock();
	return named ? 0 : -ESRCH;
}

static bool has_traced_parent(const struct task_struct *task)
{
	const struct task_struct *parent = rcu_dereference(task->real_parent);

	return etrace_task_find(parent) || etrace_task_find(parent->group_leader);
}

static bool add_children(void)
{
	struct task_struct *process, *task;
	bool added = false;

	rcu_read_lock();
	for_each_process_thread(process, task)
		if (!etrace_task_find(task) && has_traced_parent(task) && etrace_task_add(task))
			added = true;
	rcu_read_unlock();
	return added;
}

void etrace_roots_add_descendants(void)
{
	while (add_children())
		cond_resched();
}
