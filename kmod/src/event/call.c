// SPDX-License-Identifier: GPL-2.0-only
/* The system call that a traced task stands in. Context: atomic. */
#include <linux/errno.h>

#include "event/call.h"

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
