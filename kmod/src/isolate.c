// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel makes every task's system calls pass its tracepoints while anybody watches sys_exit.
 * Taking the bit away from untraced tasks makes their system calls cost what they cost without us;
 * children inherit it from their parent. While it lasts others (perf trace, bpf) see the traced
 * tasks only. The child of an untraced task that forks during a walk may keep the wrong bit: it
 * stays slow, or unseen by others.
 * Process context.
 */
#include <linux/sched/signal.h>
#include <linux/tracepoint.h>

#include "etrace.h"
#include "isolate.h"

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

void etrace_isolate_begin(void)
{
	struct task_struct *process, *task;

	WRITE_ONCE(isolated, true);
	smp_mb(); /* who is added from here on sets the bit */
	rcu_read_lock();
	for_each_process_thread(process, task)
		if (!etrace_task_find(task))
			take_bit(task);
	rcu_read_unlock();
}

void etrace_isolate_task(struct task_struct *task)
{
	if (READ_ONCE(isolated))
		etrace_syscall_tracepoints_set(task);
}

void etrace_isolate_end(void)
{
	struct task_struct *process, *task;

	if (!isolated)
		return;
	WRITE_ONCE(isolated, false);
	rcu_read_lock();
	for_each_process_thread(process, task)
		etrace_syscall_tracepoints_set(task);
	rcu_read_unlock();
}
