// SPDX-License-Identifier: GPL-2.0-only
/*
 * The system call that a traced task is in, and the numbers of the calls that the hooks look
 * at, one byte each. Numbers of one architecture are never given to another call. Context: atomic.
 */
#include <linux/cache.h>
#include <linux/errno.h>
#include <linux/init.h>
#include <linux/unistd.h>
#ifdef CONFIG_IA32_EMULATION
#include <asm/unistd_32_ia32.h>
#endif

#include "event/call.h"

#define ETRACE_CALL_NUMBERS
#include "event/calls.h"

bool etrace_exit_numbers[ETRACE_EXIT_NUMBERS] __ro_after_init;

static void __init note_numbers(const u8 *kinds, unsigned int n)
{
	unsigned int nr;

	for (nr = 0; nr < n; nr++)
		if (etrace_looked_at_exit(kinds[nr]))
			etrace_exit_numbers[nr] = true;
}

void __init etrace_syscall_table_init(void)
{
	BUILD_BUG_ON(ETRACE_NATIVE_CALLS > ETRACE_EXIT_NUMBERS);
	BUILD_BUG_ON(ETRACE_COMPAT_CALLS > ETRACE_EXIT_NUMBERS);
	note_numbers(etrace_native_calls, ETRACE_NATIVE_CALLS);
#ifdef ETRACE_HAS_COMPAT_CALLS
	note_numbers(etrace_compat_calls, ETRACE_COMPAT_CALLS);
#endif
}

struct etrace_task *etrace_task_in_call(enum etrace_call_kind first, enum etrace_call_kind last)
{
	struct etrace_task *entry = etrace_task_find(current);
	enum etrace_call_kind kind;

	if (!entry)
		return NULL;
	kind = etrace_call_kind(task_pt_regs(current));
	return kind >= first && kind <= last ? entry : NULL;
}

bool etrace_call_restarts(s64 result)
{
	switch (result) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		return true;
	default:
		return false;
	}
}
