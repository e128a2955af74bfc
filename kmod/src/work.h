/* SPDX-License-Identifier: GPL-2.0-only */
/* task_work as the core uses it; etrace.h has what hooks use. Process context. */
#ifndef ETRACE_WORK_H
#define ETRACE_WORK_H

#include <linux/types.h>

/* -errno when the kernel gives no way to add work to a task. */
int etrace_work_init(void);
/* A session begins: what is pending now is none of its own. */
void etrace_work_begin(u32 session);
/* Until no work of the session is pending, two seconds at most. How many are left. */
u32 etrace_work_wait(void);

#endif /* ETRACE_WORK_H */
