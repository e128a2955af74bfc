// SPDX-License-Identifier: Apache-2.0
/* Which core a traced task wakes on: see core.h. */
#include "task/core.h"

#include <sched.h>
#include <sys/ptrace.h>

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
	bool sees_exit = task->call || task->is_watched;
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
