// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory for one CPU's probe at a time: paths and streams are too long for the stack, and probes do
 * not allocate. Task context; preemption is off between get and put.
 */
#include <linux/percpu.h>
#include <linux/preempt.h>

#include "etrace.h"
#include "scratch.h"

static struct etrace_scratch __percpu *scratches;
static struct etrace_stream __percpu *streams;

int etrace_scratch_init(void)
{
	scratches = alloc_percpu(struct etrace_scratch);
	streams = alloc_percpu(struct etrace_stream);
	if (scratches && streams)
		return 0;
	etrace_scratch_deinit();
	return -ENOMEM;
}

void etrace_scratch_deinit(void)
{
	free_percpu(streams);
	free_percpu(scratches);
}

struct etrace_scratch *etrace_scratch_get(void)
{
	preempt_disable();
	return this_cpu_ptr(scratches);
}

void etrace_scratch_put(struct etrace_scratch *scratch)
{
	preempt_enable();
}

struct etrace_stream *etrace_emit_stream_get(void)
{
	preempt_disable();
	return this_cpu_ptr(streams);
}

void etrace_emit_stream_put(void)
{
	preempt_enable();
}
