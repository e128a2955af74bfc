/* SPDX-License-Identifier: GPL-2.0-only */
/* Whom a session traces from its start on. Process context. */
#ifndef ETRACE_ROOTS_H
#define ETRACE_ROOTS_H

#include <linux/types.h>

struct task_struct;

/* All threads of the process that `task` is in; -ESRCH when none is left. `upid`: of `task`. */
int etrace_roots_add_process(struct task_struct *task, u64 *upid);
/* What traced tasks have started before. */
void etrace_roots_add_descendants(void);

#endif /* ETRACE_ROOTS_H */
