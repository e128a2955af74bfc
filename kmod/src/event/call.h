/* SPDX-License-Identifier: GPL-2.0-only */
/* The system call that a traced task stands in. Context: atomic. */
#ifndef ETRACE_CALL_H
#define ETRACE_CALL_H

#include <linux/seccomp.h>

#include "event/syscall_table.h"
#include "task/set.h"

/* Arguments of the call that `current` stands in. */
static __always_inline void etrace_read_arguments(struct pt_regs *regs, u64 args[6])
{
	unsigned int i;

	BUILD_BUG_ON(sizeof(unsigned long) != sizeof(u64));
	syscall_get_arguments(current, regs, (unsigned long *)args);
	if (likely(!etrace_in_compat_call()))
		return;
	for (i = 0; i < 6; i++) /* the call does not look at more: int 0x80 leaves it as it was */
		args[i] = (u32)args[i];
}

/*
 * The traced task of `current`, if its present call is one of kinds [first, last], for kprobes
 * inside calls. Under rcu_read_lock().
 */
struct etrace_task *etrace_task_in_call(enum etrace_call_kind first, enum etrace_call_kind last);

/*
 * A signal came, and the kernel begins the call again: it has not ended. If the signal's handler
 * makes it fail with EINTR instead, no lines of the failure are printed.
 */
bool etrace_call_restarts(s64 result);

/*
 * A seccomp filter may answer a call with 0 (SECCOMP_RET_ERRNO), its listener with any result: the
 * call seems to succeed but was never made. If this is true, the effect of the call is checked.
 */
static __always_inline bool etrace_may_be_made_up(void)
{
	return unlikely(seccomp_mode(&current->seccomp) == SECCOMP_MODE_FILTER);
}

#endif /* ETRACE_CALL_H */
