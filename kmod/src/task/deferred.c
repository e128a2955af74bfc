// SPDX-License-Identifier: GPL-2.0-only
/*
 * What must not be done in a probe, for it allocates or takes time: names that must be walked to,
 * executions, long lists of descriptors. It waits for nobody (decision 25). Context: task_work of
 * the task, before it returns to user space or dies of a signal.
 *
 * Its buffers are those of the probes' scratch. One set a CPU is kept from one use to the next:
 * they are some 20 kB, which kernels that clear new memory would clear at each execution.
 */
#include <linux/mm.h>

#include "memory.h"
#include "record/emit.h"
#include "task/deferred.h"

static DEFINE_PER_CPU(struct etrace_scratch *, spare_space);

static struct etrace_scratch *get_space(void)
{
	struct etrace_scratch *space = this_cpu_xchg(spare_space, NULL);

	if (!space)
		space = kvmalloc(sizeof(*space), GFP_KERNEL);
	return space;
}

static void put_space(struct etrace_scratch *space)
{
	kvfree(this_cpu_xchg(spare_space, space));
}

void etrace_deferred_deinit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		kvfree(per_cpu(spare_space, cpu));
		per_cpu(spare_space, cpu) = NULL;
	}
}

static void look_again(struct etrace_task *entry)
{
	struct etrace_scratch *space;

	if (!entry->handler)
		return;
	if (current->flags & PF_EXITING) { /* its files and memory are gone */
		etrace_count(ETRACE_COUNT_UNRESOLVED_PATHS);
		return;
	}
	space = get_space();
	if (!space) {
		etrace_count(ETRACE_COUNT_NO_MEMORY);
		return;
	}
	entry->handler->work(entry, &entry->deferred, space);
	put_space(space);
}

static void run(struct callback_head *work)
{
	struct etrace_task *entry = container_of(work, struct etrace_task, work);
	u32 session = entry->origin.session;

	if (etrace_origin_live(&entry->origin))
		look_again(entry);
	etrace_names_free(entry); /* kept for a look-up that did not happen */
	etrace_exec_free(entry);
	etrace_descriptors_free(entry);
	etrace_task_put(entry);
	etrace_memory_refill();
	etrace_work_done(session);
}

static void add_work(struct etrace_task *entry, const struct etrace_handler *handler)
{
	entry->handler = handler;
	etrace_task_get(entry);
	if (!etrace_work_add(&entry->work, run))
		return;
	etrace_count(ETRACE_COUNT_UNRESOLVED_PATHS);
	etrace_task_put(entry);
}

void etrace_defer(struct etrace_task *entry, const struct etrace_call *call,
		  const struct etrace_handler *handler)
{
	entry->deferred = *call;
	entry->deferred.time_ns = etrace_now();
	add_work(entry, handler);
}

void etrace_defer_refill(struct etrace_task *entry)
{
	add_work(entry, NULL);
}
