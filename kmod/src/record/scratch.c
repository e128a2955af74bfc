// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory for one CPU's probe at a time: paths and streams are too long for the stack, and probes do
 * not allocate. Task context; preemption is off between get and put.
 *
 * Not from alloc_percpu(): that may be vmalloc memory, where each strncpy_from_user() of a hardened
 * kernel takes a global lock to look for the area that it writes to.
 */
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "record/scratch.h"

struct cpu_memory {
	struct etrace_scratch scratch; /* of a probe */
	struct etrace_stream stream; /* of etrace_emit(), whose strings may be in scratch */
};

static DEFINE_PER_CPU(struct cpu_memory *, cpu_memory);

int etrace_scratch_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct cpu_memory *memory =
			kmalloc_node(sizeof(*memory), GFP_KERNEL, cpu_to_node(cpu));

		if (!memory) {
			etrace_scratch_deinit();
			return -ENOMEM;
		}
		per_cpu(cpu_memory, cpu) = memory;
	}
	return 0;
}

void etrace_scratch_deinit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		kfree(per_cpu(cpu_memory, cpu));
		per_cpu(cpu_memory, cpu) = NULL;
	}
}

struct etrace_scratch *etrace_scratch_get(void)
{
	preempt_disable();
	return &__this_cpu_read(cpu_memory)->scratch;
}

void etrace_scratch_put(struct etrace_scratch *scratch)
{
	preempt_enable();
}

struct etrace_stream *etrace_emit_stream_get(void)
{
	preempt_disable();
	return &__this_cpu_read(cpu_memory)->stream;
}

void etrace_emit_stream_put(void)
{
	preempt_enable();
}
