/* SPDX-License-Identifier: GPL-2.0-only */
/* From a system call's number to its kind; the call that a task is in. Context: atomic. */
#ifndef ETRACE_CALL_H
#define ETRACE_CALL_H

#include <asm/syscall.h>
#include <linux/compat.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/seccomp.h>

#include "event/calls.h"
#include "task/set.h"

#define ETRACE_NATIVE_CALLS 560 /* x32 has some of its own above 512 */
#define ETRACE_COMPAT_CALLS 480

extern const u8 etrace_native_calls[ETRACE_NATIVE_CALLS];
#if defined(CONFIG_IA32_EMULATION) || (defined(CONFIG_ARM64) && defined(CONFIG_COMPAT))
#define ETRACE_HAS_COMPAT_CALLS
extern const u8 etrace_compat_calls[ETRACE_COMPAT_CALLS];
#endif

/*
 * Whether any of the tables has a call of this number whose return is traced. The remainder of the
 * number is the index (this also removes the bit of x32). The tables distinguish calls that share
 * an entry.
 */
#define ETRACE_EXIT_NUMBERS 1024

extern bool etrace_exit_numbers[ETRACE_EXIT_NUMBERS];

/* When the module is loaded. */
void etrace_syscall_table_init(void);

/* Whether the call that `current` is in is one of the 32-bit table. */
static __always_inline bool etrace_in_compat_call(void)
{
#if !defined(ETRACE_HAS_COMPAT_CALLS)
	return false;
#elif defined(CONFIG_X86)
	return in_ia32_syscall();
#else
	return is_compat_task();
#endif
}

static __always_inline bool etrace_looked_at_exit(enum etrace_call_kind kind)
{
	return kind - 1u < ETRACE_N_CALLS_AT_EXIT - 1u;
}

static __always_inline enum etrace_call_kind etrace_call_kind(struct pt_regs *regs)
{
	unsigned int nr = syscall_get_nr(current, regs);

#ifdef ETRACE_HAS_COMPAT_CALLS
	if (unlikely(etrace_in_compat_call())) {
		if (nr >= ETRACE_COMPAT_CALLS)
			return ETRACE_CALL_NONE;
		return etrace_compat_calls[array_index_nospec(nr, ETRACE_COMPAT_CALLS)];
	}
#endif
#ifdef __X32_SYSCALL_BIT
	nr &= ~(unsigned int)__X32_SYSCALL_BIT;
#endif
	if (unlikely(nr >= ETRACE_NATIVE_CALLS))
		return ETRACE_CALL_NONE;
	return etrace_native_calls[array_index_nospec(nr, ETRACE_NATIVE_CALLS)];
}

/* Arguments of the call that `current` is in. */
static __always_inline void etrace_read_arguments(struct pt_regs *regs, u64 args[6])
{
	unsigned int i;

	BUILD_BUG_ON(sizeof(unsigned long) != sizeof(u64));
	syscall_get_arguments(current, regs, (unsigned long *)args);
	if (likely(!etrace_in_compat_call()))
		return;
	for (i = 0; i < 6; i++) /* the call does not look at more: int 0x80 leaves it unchanged */
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
