/* SPDX-License-Identifier: GPL-2.0-only */
/* task_work as the core uses it; etrace.h has what hooks use. Process context. */
#ifndef ETRACE_WORK_H
#define ETRACE_WORK_H

/* -errno when the kernel gives no way to add work to a task. */
int etrace_work_init(void);
/* Until no work is pending, two seconds at most. */
void etrace_work_wait(void);

#endif /* ETRACE_WORK_H */
