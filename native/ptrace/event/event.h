/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the traced tasks: system calls when they are entered and when they have returned, and the rest. */
#ifndef ETRACE_PTRACE_EVENT_H
#define ETRACE_PTRACE_EVENT_H

#include <stddef.h>

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
	bool keeps_strings; /* what it reads at the entry is compared with what is there at the exit */
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

/* descriptor.c: opens too */
extern const struct syscall_handler open_handler, openat_handler, openat2_handler, creat_handler;
extern const struct syscall_handler open_by_handle_handler;
extern const struct syscall_handler close_handler, close_range_handler;
extern const struct syscall_handler pipe_handler;
extern const struct syscall_handler dup_handler, dup2_handler, dup3_handler, fcntl_handler;

/* written.c */
extern const struct syscall_handler write_handler, writev_handler;

/* name.c: mounts too */
extern const struct syscall_handler rename_handler, link_handler, symlink_handler;
extern const struct syscall_handler mount_handler, umount_handler;

/* process.c */
extern const struct syscall_handler clone_handler, execveat_handler, set_name_handler;
extern const struct syscall_handler chdir_handler, chroot_handler, unshare_handler, setns_handler;
extern const struct syscall_handler ptrace_handler, count_handler, affinity_handler;
extern const struct syscall_handler seccomp_handler;

enum descriptor_state { DESCRIPTOR_OPEN, DESCRIPTOR_FREE, DESCRIPTOR_UNKNOWN };

/* Facts from /proc about a descriptor; unknown where /proc hides them. */
enum descriptor_state descriptor_look_up(const struct task *task, int fd);

/* ---- process.c: tasks that are made, execute and end ---- */

/* A child of `parent` appeared: print the parent's call. */
void process_put_fork(struct task *parent, struct task *child);

/* Flags of the call at whose ptrace event `parent` is; fork and vfork have theirs implied. */
u64 process_clone_flags(struct task *parent, pid_t child, int event);

/* A clone ended without a child: print that it failed. */
void process_settle_clone(struct task *task);

/* The task ended with this wait status. */
void process_put_exit(struct task *task, int wait_status);

/* Note the descriptors that a task has from before it was traced. */
void process_list_descriptors(struct task *task);

/* Restore the registers of a clone that the tracer changed. */
void process_restore_argument(struct task *task);

/* ---- exec.c ---- */

/* A new program was loaded and has not run yet. */
void exec_put(struct task *task);

/* Print the name of a thread as the kernel has it, with --thread-names. */
void exec_put_comm(struct task *task, u64 now);

/* ---- usage.c: what processes used, for the Usage lines (docs/decisions/0047-usage.md) ---- */

/* A thread is at its end (PTRACE_EVENT_EXIT): its memory is still there. */
void usage_take(struct task *task);

/* Print what the process has used, at an exec; `time_ns` is the New_proc's. */
void usage_put_exec(struct task *task, u64 time_ns);

/* A thread goes on as the leader: the sums of the process are its own now. */
void usage_move(struct task *leader, struct task *thread);

/* Print what the process of this leader used, if it was seen ending. */
void usage_put_end(struct task *task, u64 time_ns);

/* ---- written.c: what processes wrote to standard error and output ---- */

/* Print what the process of this leader has written since its last execution. */
void written_put(struct task *task, u64 time_ns, bool has_failed);

#endif /* ETRACE_PTRACE_EVENT_H */
