/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of the calls that rename, link and mount. */
#ifndef ETRACE_NAMES_H
#define ETRACE_NAMES_H

#include <linux/bits.h>

#include "event/syscall_table.h"
#include "task/entry.h"

/* Security hooks of the kernel that names are kept from. */
enum etrace_hook {
	ETRACE_HOOK_RENAME = BIT(0),
	ETRACE_HOOK_LINK = BIT(1),
	ETRACE_HOOK_SYMLINK = BIT(2),
	ETRACE_HOOK_MOUNT = BIT(3),
	ETRACE_HOOK_UMOUNT = BIT(4),
};

/* Hooks whose probes are set and known to fire; probe/hooks.c writes it. */
extern u32 etrace_firing_hooks;

/* Keep copies of three strings, any of them absent. Atomic. */
void etrace_names_keep(struct etrace_task *entry, enum etrace_call_kind kind,
		       const struct etrace_text *texts);
/* What was kept for this call, the caller's to kfree(); NULL when its hook was not reached. */
struct etrace_names *etrace_names_take(struct etrace_task *entry, enum etrace_call_kind kind);
/* Whether a call that has succeeded was made: its hook has seen it, or does not fire. Atomic. */
bool etrace_was_made(const struct etrace_task *entry, enum etrace_hook hook);

/*
 * A name of a call that has succeeded, where its hook did not keep it: as given, where its path is
 * longer than any can be. Buffers as those of etrace_resolve(). Sleeps.
 */
struct etrace_text etrace_find_name(int dirfd, u64 address, bool follow, char *scratch, char *buf);
/* The name that a call has made; absent when a filter may have made the call up, not the name. */
struct etrace_text etrace_find_made(const struct etrace_task *entry, int dirfd, u64 address,
				    char *scratch, char *buf);

#endif /* ETRACE_NAMES_H */
