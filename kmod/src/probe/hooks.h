/* SPDX-License-Identifier: GPL-2.0-only */
/* The probes of a session. */
#ifndef ETRACE_HOOKS_H
#define ETRACE_HOOKS_H

#include <linux/types.h>

/*
 * Register all probes; those that this kernel lacks are reported by etrace_hooks_missing(). Process
 * context. unregister returns after the last probe has returned (task_work may still be pending).
 */
int etrace_hooks_register(u32 options);
void etrace_hooks_unregister(void);
/* Name of the nth function that could not be probed, NULL after the last. */
const char *etrace_hooks_missing(unsigned int n);

struct pt_regs;

/* Its probe. Context: the task, atomic. */
void etrace_on_sys_exit(void *data, struct pt_regs *regs, long result);

#endif /* ETRACE_HOOKS_H */
