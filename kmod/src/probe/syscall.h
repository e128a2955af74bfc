/* SPDX-License-Identifier: GPL-2.0-only */
/* The raw tracepoint sys_exit. */
#ifndef ETRACE_SYSCALL_H
#define ETRACE_SYSCALL_H

struct pt_regs;

/* Its probe. Context: the task, atomic. */
void etrace_on_sys_exit(void *data, struct pt_regs *regs, long result);

#endif /* ETRACE_SYSCALL_H */
