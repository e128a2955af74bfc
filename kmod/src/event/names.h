/* SPDX-License-Identifier: GPL-2.0-only */
/* Names that a task gives, and the files that they lead to. */
#ifndef ETRACE_NAMES_H
#define ETRACE_NAMES_H

#include <linux/bits.h>

#include "etrace_format.h"
#include "event/call.h"
#include "record/emit.h"
#include "task/entry.h"

/* ---- walk.c ---- */

struct path;

/*
 * Resolve `name` (absolute, or relative to the working directory) with the kernel's memory; a
 * symlink at its end is followed or not. The caller calls path_put(). -EAGAIN, counted: some part
 * is not in memory. Uses `buf` of ETRACE_PATH_BYTES, which may not hold `name`. Waits for no file
 * system. Process context of the task.
 */
int etrace_walk(const char *name, bool follow, char *buf, struct path *path);
/* The same as text, in the same `buf`; absent when it leads to nothing that is known. */
struct etrace_text etrace_walk_text(const char *name, bool follow, char *buf);

/* ---- names.c: the files that names lead to now; process context of the task, sleeps ---- */

/* With a descriptor: what execveat puts before its name. */
#define ETRACE_FD_DIRECTORY "/dev/fd/"

/* Is `name` one of a link of /proc, which leads to a descriptor or a program? */
bool etrace_is_proc_name(const char *name);

/*
 * What a descriptor is, where `name` is one by a link of /proc, in `buf` of ETRACE_PATH_BYTES; else
 * absent.
 */
struct etrace_text etrace_descriptor_name(const char *name, char *buf);

/*
 * The file that a path of the task leads to now: absolute, directories resolved, a symlink at its
 * end followed or not, in `buf` of ETRACE_PATH_BYTES. Where there is no such file but its directory
 * exists and `or_new` is set, the name it would have; else absent. `scratch` of 2 * PATH_MAX bytes
 * is used on the way. Sleeps.
 */
struct etrace_text etrace_resolve(int dirfd, u64 address, bool follow, bool or_new, char *scratch,
				  char *buf);

/* ---- exec_name.c ---- */

/* The paths PI and PP; `path`, `third` and the first half of `other` of space hold them. Sleeps. */
void etrace_exec_names(const struct etrace_exec *exec, struct etrace_scratch *space,
		       struct etrace_text *interpreter, struct etrace_text *program);

/* ---- names.c: names of the calls that rename, link and mount ---- */

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
