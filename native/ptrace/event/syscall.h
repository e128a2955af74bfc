/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of the traced tasks: what to do when one is entered and when it has returned. */
#ifndef ETRACE_PTRACE_SYSCALL_H
#define ETRACE_PTRACE_SYSCALL_H

#include "task/path.h"
#include "task/task.h"

/*
 * A call stops at its entry; the exit stop is asked for only when `enter` returns true. Without an
 * `enter` it always is. The arguments are in task->args at both. Either runs again when it ends with
 * lookup_is_pending().
 */
struct syscall_handler {
	bool (*enter)(struct task *task);
	void (*exit)(struct task *task, s64 result);
};

/* The stop of a call that the filter selected. Whether its exit must be seen too. */
bool syscall_enter(struct task *task, enum call call, const uint64_t *args);

/* The exit of the call in task->call. */
void syscall_exit(struct task *task, s64 result);

/* Print one event of a task, now. */
void event_put(struct task *task, enum etrace_event event, const s64 *values,
	       const struct etrace_text *data);

/* Print it with a time stamp taken before. */
void event_put_at(struct task *task, u64 time_ns, enum etrace_event event, const s64 *values,
		  const struct etrace_text *data);

/* open.c */
extern const struct syscall_handler open_handler, openat_handler, openat2_handler, creat_handler;
extern const struct syscall_handler open_by_handle_handler;

/* descriptor.c */
extern const struct syscall_handler close_handler, close_range_handler;
extern const struct syscall_handler pipe_handler;
extern const struct syscall_handler dup_handler, dup2_handler, dup3_handler, fcntl_handler;

/* name.c */
extern const struct syscall_handler rename_handler, link_handler, symlink_handler;

/* mount.c */
extern const struct syscall_handler mount_handler, umount_handler;

/* process.c */
extern const struct syscall_handler clone_handler, execveat_handler, set_name_handler;
extern const struct syscall_handler chdir_handler, chroot_handler, unshare_handler, setns_handler;
extern const struct syscall_handler ptrace_handler, count_handler, affinity_handler;
extern const struct syscall_handler seccomp_handler;

#endif /* ETRACE_PTRACE_SYSCALL_H */
