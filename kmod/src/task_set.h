/* SPDX-License-Identifier: GPL-2.0-only */
/* The set as the session opens and closes it; etrace.h has what probes use. Process context. */
#ifndef ETRACE_TASK_SET_H
#define ETRACE_TASK_SET_H

#include <linux/types.h>

struct signal_struct;

/* Tasks may be added from now on. `root` belongs to the process whose end is told, or is NULL. */
void etrace_task_set_open(const struct signal_struct *root);
/* Forget all tasks. All probes are gone. */
void etrace_task_set_close(void);
u32 etrace_task_set_live(void);

#endif /* ETRACE_TASK_SET_H */
