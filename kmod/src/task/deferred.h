/* SPDX-License-Identifier: GPL-2.0-only */
/* Second looks at calls, where they may sleep: before the task returns to user space. */
#ifndef ETRACE_DEFERRED_H
#define ETRACE_DEFERRED_H

#include "task/entry.h"

/* Have the handler's work done about the call of `current`, whose time is now. Atomic. */
void etrace_defer(struct etrace_task *entry, const struct etrace_call *call,
		  const struct etrace_handler *handler);
/* Only make the reserve of memory whole then: storms of forks must not outrun it. Atomic. */
void etrace_defer_refill(struct etrace_task *entry);

/* When the module goes, after the last task_work: free the memory kept for it. */
void etrace_deferred_deinit(void);

/* ---- work.c: what runs in a traced task before it returns to user space (task_work) ---- */

/* -errno when the kernel cannot add work to a task. Process context. */
int etrace_work_init(void);

/*
 * Run `work` in `current` before it returns to user space; it may sleep there. The caller holds a
 * reference of its etrace_task for it; unloading waits until none is pending. -errno when the task
 * is past that point (exiting). Atomic.
 */
int etrace_work_add(struct callback_head *work, void (*function)(struct callback_head *work));
void etrace_work_done(u32 session); /* of the task; last thing that `function` calls */

/* A session begins: work that is pending now does not belong to it. Process context. */
void etrace_work_begin(u32 session);
/* Until no work of the session is pending, two seconds at most. How many are left. Sleeps. */
u32 etrace_work_wait(void);

#endif /* ETRACE_DEFERRED_H */
