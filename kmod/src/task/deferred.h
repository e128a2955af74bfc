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

#endif /* ETRACE_DEFERRED_H */
