// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tracing a cgroup (version 2): its members, those of the cgroups below, and everything that is
 * moved or cloned into it. What is traced stays so when it leaves. The probe runs with interrupts
 * off, under locks of the cgroup core.
 */
#include <linux/cgroup.h>
#include <linux/sched/signal.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

#include "lookup.h"
#include "memory.h"
#include "task/set.h"

#define ADDED_AT_ONCE 256 /* threads of a process that is moved: with interrupts off */

static struct cgroup *traced; /* a reference is held */
static struct tracepoint *attach_tracepoint;

bool etrace_cgroup_holds(struct task_struct *task)
{
	struct cgroup *cgroup = READ_ONCE(traced);

	return cgroup && task_under_cgroup_hierarchy(task, cgroup);
}

static void add_members(void)
{
	struct task_struct *process, *task;

	rcu_read_lock();
	for_each_process_thread(process, task)
		if (etrace_cgroup_holds(task))
			etrace_task_add(task);
	rcu_read_unlock();
}

static void add_rest(struct work_struct *work)
{
	add_members();
}

static DECLARE_WORK(add_rest_work, add_rest);

/* Of a process with more threads the rest is added a little later, where it may be preempted. */
static void add_threads(struct task_struct *leader)
{
	struct task_struct *thread;
	unsigned int n = 0;

	for_each_thread(leader, thread) {
		if (n++ == ADDED_AT_ONCE || etrace_memory_low()) {
			schedule_work(&add_rest_work);
			return;
		}
		etrace_task_add(thread);
	}
}

/* cgroup_attach_task: `leader` or all its threads have been moved to `to`. */
static void attached(void *data, struct cgroup *to, const char *path, struct task_struct *leader,
		     bool whole_process)
{
	if (!cgroup_is_descendant(to, traced))
		return;
	rcu_read_lock();
	if (whole_process)
		add_threads(leader);
	else
		etrace_task_add(leader);
	rcu_read_unlock();
}

int etrace_cgroup_begin(const char *path)
{
	struct cgroup *cgroup;
	int err;

	attach_tracepoint = etrace_tracepoint_find("cgroup_attach_task");
	if (!attach_tracepoint)
		return -EOPNOTSUPP;
	cgroup = cgroup_get_from_path(path);
	if (IS_ERR(cgroup))
		return PTR_ERR(cgroup);
	WRITE_ONCE(traced, cgroup);
	err = tracepoint_probe_register(attach_tracepoint, attached, NULL);
	if (err) {
		WRITE_ONCE(traced, NULL);
		cgroup_put(cgroup);
		return err;
	}
	add_members();
	return 0;
}

void etrace_cgroup_end(void)
{
	struct cgroup *cgroup = traced;

	if (!cgroup)
		return;
	tracepoint_probe_unregister(attach_tracepoint, attached, NULL);
	tracepoint_synchronize_unregister();
	cancel_work_sync(&add_rest_work);
	WRITE_ONCE(traced, NULL);
	cgroup_put(cgroup);
}
