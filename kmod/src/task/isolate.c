// SPDX-License-Identifier: GPL-2.0-only
/*
 * While sys_exit has a probe, the system calls of every task pass the tracepoints. Without the bit,
 * system calls of untraced tasks have no extra cost; children inherit the bit from their parent.
 * Meanwhile other tools (perf trace, bpf) see the traced tasks only. The child of an untraced task
 * that forks during a walk may keep the wrong bit: it stays slow, or unseen by others. Process
 * context.
 */
#include <linux/sched/signal.h>
#include <linux/tracepoint.h>

#include "compat.h"
#include "lookup.h"
#include "task/set.h"

static bool isolated;

static bool watched(const char *name)
{
	struct tracepoint *tracepoint = etrace_tracepoint_find(name);

	return tracepoint && static_key_enabled(&tracepoint->key);
}

bool etrace_isolate_possible(void)
{
	return !watched("sys_enter") && !watched("sys_exit");
}

/* Somebody may have added the task meanwhile and given it the bit. */
static void take_bit(struct task_struct *task)
{
	etrace_syscall_tracepoints_clear(task);
	smp_mb__after_atomic(); /* pairs with etrace_task_add() */
	if (etrace_task_find(task))
		etrace_syscall_tracepoints_set(task);
}

/* Of a task that has become traced. */
static void give_bit(struct task_struct *task)
{
	etrace_syscall_tracepoints_set(task);
}

void etrace_isolate_begin(void)
{
	struct task_struct *process, *task;

	isolated = true;
	etrace_task_set_watch(give_bit);
	smp_mb(); /* who is added from here on gets the bit */
	rcu_read_lock();
	for_each_process_thread(process, task)
		if (!etrace_task_find(task))
			take_bit(task);
	rcu_read_unlock();
}

void etrace_isolate_end(void)
{
	struct task_struct *process, *task;

	if (!isolated)
		return;
	isolated = false;
	etrace_task_set_watch(NULL);
	rcu_read_lock();
	for_each_process_thread(process, task)
		etrace_syscall_tracepoints_set(task);
	rcu_read_unlock();
}
