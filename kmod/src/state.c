// SPDX-License-Identifier: GPL-2.0-only
/* The session that runs, as all parts see it; session/session.c writes it. */
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/string.h>

#include "state.h"

u32 etrace_options;
u32 etrace_session;
struct etrace_counters __percpu *etrace_counters;

int etrace_state_init(void)
{
	etrace_counters = alloc_percpu(struct etrace_counters);
	return etrace_counters ? 0 : -ENOMEM;
}

void etrace_state_deinit(void)
{
	free_percpu(etrace_counters);
}

void etrace_counters_reset(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(etrace_counters, cpu), 0, sizeof(struct etrace_counters));
}

void etrace_counters_sum(u64 *sums)
{
	int cpu, i;

	for_each_possible_cpu(cpu)
		for (i = 0; i < ETRACE_N_COUNTERS; i++)
			sums[i] += READ_ONCE(per_cpu_ptr(etrace_counters, cpu)->n[i]);
}
