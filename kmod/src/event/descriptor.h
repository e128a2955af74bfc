/* SPDX-License-Identifier: GPL-2.0-only */
/* Which descriptors are new, and which are about to be closed. Context: atomic. */
#ifndef ETRACE_DESCRIPTOR_H
#define ETRACE_DESCRIPTOR_H

#include "task/entry.h"

struct files_struct;

/*
 * Keep those of [first, last] that are open, with `on_exec` only those marked to be closed then.
 * Atomic, under rcu_read_lock(); counted when memory is short.
 */
void etrace_descriptors_keep(struct etrace_task *entry, const struct files_struct *files,
			     bool on_exec, u32 first, u32 last);

/*
 * Whether `fd`, the result of a call that takes the lowest free descriptor, is new. A filter can
 * make up 0 only; who takes 0 leaves 1 as the first to try. With others who use the table nobody
 * can tell: then it is.
 */
bool etrace_zero_is_new(void);
static __always_inline bool etrace_is_new(s64 fd)
{
	return likely(fd) || etrace_zero_is_new();
}

#endif /* ETRACE_DESCRIPTOR_H */
