// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory for probes on PREEMPT_RT kernels. Preemptible callers use kmalloc(). Others take chunks
 * from a reserve that kmalloc() filled before, and put freed memory on a list for a caller that may
 * use kfree(). The reserve is filled when the module is loaded, and again by each task_work, and by
 * a workqueue when it becomes low. Task context; refill and init sleep.
 */
#include <linux/cpumask.h>
#include <linux/limits.h>
#include <linux/llist.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "memory.h"

struct chunk {
	struct chunk *next;
};

struct reserve {
	raw_spinlock_t lock; /* of what follows */
	struct chunk *first;
	unsigned int n; /* chunks; a look without the lock is good enough to say that it is low */
	/* constant since the module was loaded */
	unsigned int n_full;
	size_t size; /* of a chunk */
};

/* What a task needs until its next task_work: small a fork one, an execution three. */
static struct reserve small = {
	.lock = __RAW_SPIN_LOCK_UNLOCKED(small.lock),
	.size = 256,
};

/* For long names of an execution and large tables of descriptors. */
static struct reserve large = {
	.lock = __RAW_SPIN_LOCK_UNLOCKED(large.lock),
	.size = 2 * PATH_MAX,
};

#define SMALL_CHUNKS 256
#define SMALL_CHUNKS_PER_CPU 32
#define LARGE_CHUNKS 16
#define LARGE_CHUNKS_PER_CPU 2

static LLIST_HEAD(freed);

static void work(struct work_struct *work)
{
	etrace_memory_refill();
}

static DECLARE_WORK(refill_work, work);

static bool is_low(const struct reserve *reserve)
{
	return READ_ONCE(reserve->n) < reserve->n_full / 2;
}

bool etrace_memory_low(void)
{
	return is_low(&small);
}

static void *take(struct reserve *reserve)
{
	struct chunk *chunk;
	unsigned long flags;

	raw_spin_lock_irqsave(&reserve->lock, flags);
	chunk = reserve->first;
	if (chunk) {
		reserve->first = chunk->next;
		WRITE_ONCE(reserve->n, reserve->n - 1);
	}
	raw_spin_unlock_irqrestore(&reserve->lock, flags);
	if (is_low(reserve))
		schedule_work(&refill_work);
	return chunk;
}

void *etrace_alloc(size_t size)
{
	if (preemptible())
		return kmalloc(size, GFP_ATOMIC | __GFP_NOWARN);
	if (size <= small.size)
		return take(&small);
	return size <= large.size ? take(&large) : NULL;
}

/* All of our memory is kmalloc()'s and larger than a list's node. */
void etrace_free(void *memory)
{
	if (preemptible())
		kfree(memory);
	else if (memory && llist_add(memory, &freed))
		schedule_work(&refill_work);
}

static void free_freed(void)
{
	struct llist_node *node = llist_del_all(&freed);

	while (node) {
		struct llist_node *next = node->next;

		kfree(node);
		node = next;
	}
}

static int fill(struct reserve *reserve)
{
	while (READ_ONCE(reserve->n) < reserve->n_full) {
		struct chunk *chunk = kmalloc(reserve->size, GFP_KERNEL | __GFP_NOWARN);

		if (!chunk)
			return -ENOMEM;
		raw_spin_lock_irq(&reserve->lock);
		chunk->next = reserve->first;
		reserve->first = chunk;
		WRITE_ONCE(reserve->n, reserve->n + 1);
		raw_spin_unlock_irq(&reserve->lock);
	}
	return 0;
}

void etrace_memory_refill(void)
{
	if (!llist_empty(&freed))
		free_freed();
	fill(&small); /* the next caller gets the missing ones */
	fill(&large);
}

static void empty(struct reserve *reserve)
{
	struct chunk *chunk = reserve->first;

	while (chunk) {
		struct chunk *next = chunk->next;

		kfree(chunk);
		chunk = next;
	}
}

int etrace_memory_init(void)
{
	int err;

	small.n_full = SMALL_CHUNKS + SMALL_CHUNKS_PER_CPU * num_possible_cpus();
	large.n_full = LARGE_CHUNKS + LARGE_CHUNKS_PER_CPU * num_possible_cpus();
	err = fill(&small) ?: fill(&large);
	if (err)
		etrace_memory_deinit();
	return err;
}

/* No probe and no task_work is left. */
void etrace_memory_deinit(void)
{
	cancel_work_sync(&refill_work);
	free_freed();
	empty(&small);
	empty(&large);
}
