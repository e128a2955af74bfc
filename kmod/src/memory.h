/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory for probes, which do not sleep. On PREEMPT_RT kernels kmalloc() and kfree() take locks
 * that do, whatever the flags say, and probes run with preemption off (up to Linux 6.12 all of
 * them): memory.c, only built for such kernels, keeps some in reserve.
 */
#ifndef ETRACE_MEMORY_H
#define ETRACE_MEMORY_H

#include <linux/slab.h>
#include <linux/types.h>

#ifdef CONFIG_PREEMPT_RT
/* NULL when there is none; not zeroed. Any context but hard interrupts. */
void *etrace_alloc(size_t size);
void etrace_free(void *memory);
/* Fewer chunks are left than concurrent forks may take: schedule a refill. Any context. */
bool etrace_memory_low(void);
/* Make the reserve whole. Sleeps. */
void etrace_memory_refill(void);
int etrace_memory_init(void);
void etrace_memory_deinit(void);
#else
static inline void *etrace_alloc(size_t size)
{
	return kmalloc(size, GFP_ATOMIC | __GFP_NOWARN);
}

static inline void etrace_free(void *memory)
{
	kfree(memory);
}

static inline bool etrace_memory_low(void)
{
	return false;
}

static inline void etrace_memory_refill(void)
{
}

static inline int etrace_memory_init(void)
{
	return 0;
}

static inline void etrace_memory_deinit(void)
{
}
#endif

#endif /* ETRACE_MEMORY_H */
