/* SPDX-License-Identifier: GPL-2.0-only */
/* From a system call's number to its kind. */
#ifndef ETRACE_SYSCALL_TABLE_H
#define ETRACE_SYSCALL_TABLE_H

#include <linux/compat.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <asm/syscall.h>

#include "event/calls.h"

#define ETRACE_NATIVE_CALLS 560 /* x32 has some of its own behind 512 */
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

/* Whether the call that `current` stands in is one of the 32-bit table. */
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

#endif /* ETRACE_SYSCALL_TABLE_H */
