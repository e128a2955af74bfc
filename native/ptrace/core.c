// SPDX-License-Identifier: Apache-2.0
/* Which core a traced task wakes on: see core.h. */
#include "core.h"

bool core_bind(const struct task *task, cpu_set_t *own)
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

void core_put_back(const struct task *task, const cpu_set_t *own)
{
	sched_setaffinity(task->tid, sizeof(*own), own); /* or it has ended */
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
