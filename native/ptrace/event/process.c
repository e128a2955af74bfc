// SPDX-License-Identifier: Apache-2.0
/*
 * fork, vfork, clone, clone3, exit, and the calls that change what a task shares or sees.
 *
 * A child is announced by a ptrace event, so fork and vfork need no stop of their own. clone and
 * clone3 stop at the entry only: either the event follows, or the next stop of the task shows
 * that the call failed.
 */
#include "event/event.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/proc.h"
#include "task/memory.h"
#include "task/task.h"

#define RED_ZONE_BYTES 512 /* more than a leaf function may use below its stack pointer */
#define CLONE_ARGS_MAX 256
#define ERESTARTNOINTR 513 /* kernel-internal: the call is made again after the signal */

/* struct clone_args of linux/sched.h, its first version. */
struct clone3_args {
	u64 flags;
	u64 pidfd;
	u64 child_tid;
	u64 parent_tid;
	u64 exit_signal;
};

static void change_argument(struct task *task, u64 value)
{
	task->argument_changed = true;
	task->argument = task->args[0];
	registers_set_argument(task, value);
}

void process_restore_argument(struct task *task)
{
	if (!task->argument_changed)
		return;
	registers_restore_argument(task, task->argument);
	task->argument_changed = false;
	if (task->covered)
		memory_write(task, task->covered_at, task->covered, task->n_covered);
	free(task->covered);
	task->covered = NULL;
}

static u64 below_stack(const struct task *task, size_t size)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, sizeof(info), &info) <= 0)
		return 0;
	return (info.stack_pointer - RED_ZONE_BYTES - size) & ~(u64)15;
}

/* The arguments of clone3 in memory that cannot be written: a copy below the stack is passed. */
static bool pass_copy(struct task *task, u64 flags)
{
	size_t size = task->args[1];
	char copy[CLONE_ARGS_MAX];
	u64 at;

	if (size < sizeof(flags) || size > sizeof(copy) ||
	    memory_read(task, task->args[0], copy, size) != (ssize_t)size)
		return false;
	memcpy(copy, &flags, sizeof(flags));
	at = below_stack(task, size);
	task->covered = must_alloc(size);
	task->covered_at = at;
	task->n_covered = size;
	if (!at || memory_read(task, at, task->covered, size) != (ssize_t)size ||
	    memory_write(task, at, copy, size) != (ssize_t)size) {
		free(task->covered);
		task->covered = NULL;
		return false;
	}
	change_argument(task, at);
	return true;
}

/* A child made with CLONE_UNTRACED would run under the filter without a tracer: take it off. */
static void trace_anyway(struct task *task, u64 flags)
{
	u64 traced = flags & ~(u64)CLONE_UNTRACED;

	if (!(flags & CLONE_UNTRACED))
		return;
	if (task->call == CALL_CLONE)
		change_argument(task, traced);
	else if (memory_write(task, task->args[0], &traced, sizeof(traced)) == sizeof(traced))
		task->clone_flags_at = task->args[0];
	else if (!pass_copy(task, traced))
		counters.untraced++;
}

static void restore_clone_flags(struct task *task)
{
	u64 flags;

	if (!task->clone_flags_at)
		return;
	if (memory_read(task, task->clone_flags_at, &flags, sizeof(flags)) == sizeof(flags)) {
		flags |= CLONE_UNTRACED;
		memory_write(task, task->clone_flags_at, &flags, sizeof(flags));
	}
	task->clone_flags_at = 0;
}

static bool enter_clone(struct task *task)
{
	u64 flags = task->args[0];

	if (task->call == CALL_CLONE3) {
		struct clone3_args args = { .flags = 0 };

		memory_read(task, task->args[0], &args, sizeof(args));
		flags = args.flags;
		trace_anyway(task, flags);
		flags |= args.exit_signal;
	} else {
		trace_anyway(task, flags);
	}
	task->clone = task->call;
	task->clone_flags = flags;
	task->clone_time = monotonic_ns();
	return task->argument_changed;
}

static void exit_clone(struct task *task, s64 result)
{
	(void)result;
	process_restore_argument(task);
}

const struct syscall_handler clone_handler = { enter_clone, exit_clone, false };

static void put_failed_clone(struct task *task)
{
	s64 flags = (s64)task->clone_flags;

	event_put_at(task, task->clone_time, ETRACE_EV_SYS_CLONE, &flags, NULL);
	event_put_at(task, task->clone_time, ETRACE_EV_SYS_CLONE_FAILED, NULL, NULL);
}

/*
 * What a child of clone3 shares: the flags in memory may have changed since the entry, so the kernel
 * is asked. The flags that it cannot be asked for are those of the entry.
 */
static u64 shared_flags(const struct task *parent, pid_t child, u64 flags)
{
	static const struct {
		u64 flag;
		int kind;
	} shared[] = { { CLONE_VM, KCMP_VM }, { CLONE_FILES, KCMP_FILES }, { CLONE_FS, KCMP_FS } };
	char name[2 * PROC_NAME_MAX];
	size_t i;

	for (i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
		long order = syscall(SYS_kcmp, parent->tid, child, shared[i].kind, 0, 0);

		if (order >= 0) /* -1: the kernel has no kcmp, or the child is gone */
			flags = order ? flags & ~shared[i].flag : flags | shared[i].flag;
	}
	snprintf(name, sizeof(name), "/proc/%d/task/%d", parent->tgid, child);
	if (access(name, F_OK) == 0)
		return flags | CLONE_THREAD;
	return errno == ENOENT ? flags & ~(u64)CLONE_THREAD : flags;
}

u64 process_clone_flags(struct task *parent, pid_t child, int event)
{
	if (parent->clone && registers_of_fork(parent)) {
		put_failed_clone(parent);
		parent->clone = CALL_NONE;
	}
	if (parent->clone == CALL_CLONE3)
		parent->clone_flags = shared_flags(parent, child, parent->clone_flags);
	if (parent->clone)
		return parent->clone_flags;
	return event == PTRACE_EVENT_VFORK ? CLONE_VM | CLONE_VFORK : 0;
}

void process_put_fork(struct task *parent, struct task *child)
{
	s64 flags = (s64)parent->clone_flags;
	u64 now = monotonic_ns();

	if (parent->clone)
		event_put_at(parent, now, ETRACE_EV_SYS_CLONE, &flags, NULL);
	event_put_at(parent, now, ETRACE_EV_SCHED_FORK, &child->upid, NULL);
	restore_clone_flags(parent);
	parent->clone = CALL_NONE;
}

void process_settle_clone(struct task *task)
{
	if (!task->clone)
		return;
	restore_clone_flags(task);
	if (registers_result(task) != -ERESTARTNOINTR)
		put_failed_clone(task);
	task->clone = CALL_NONE;
}

void process_put_exit(struct task *task, int wait_status)
{
	s64 status = WIFSIGNALED(wait_status) ? ETRACE_SIGNAL_STATUS_BASE + WTERMSIG(wait_status)
					      : WEXITSTATUS(wait_status);

	u64 now = monotonic_ns();

	if (task->clone && WIFEXITED(wait_status)) /* a killed task may have been cloning still */
		put_failed_clone(task);
	written_put(task, now, status != 0);
	usage_put_end(task, now);
	event_put_at(task, now, ETRACE_EV_EXIT, &status, NULL);
}

void process_list_descriptors(struct task *task)
{
	char name[PROC_NAME_MAX];
	struct dirent *entry;
	DIR *directory;

	proc_name(name, task->tid, "fd");
	directory = opendir(name);
	if (!directory)
		return;
	while ((entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			fd_table_add(task->fds, atoi(entry->d_name));
	closedir(directory);
}

/* The name itself comes from the new program's stack: see exec.c. */
static bool enter_execveat(struct task *task)
{
	struct path directory;

	free(task->exec_path);
	task->exec_path = NULL;
	if (path_of_fd(task, (int)task->args[0], &directory)) {
		task->exec_path = strdup(directory.text);
		if (!task->exec_path)
			die("out of memory");
	}
	return true;
}

static void exit_execveat(struct task *task, s64 result)
{
	(void)result;
	free(task->exec_path);
	task->exec_path = NULL;
}

const struct syscall_handler execveat_handler = { enter_execveat, exit_execveat, false };

/* The kernel is asked for the name: the program may have changed the string meanwhile. */
static void exit_set_name(struct task *task, s64 result)
{
	if (result < 0)
		return;
	memory_note_cpu(task);
	exec_put_comm(task, monotonic_ns());
}

const struct syscall_handler set_name_handler = { .exit = exit_set_name };

/*
 * A task that shares its directories with nobody is back here after the call at the earliest. One
 * that shares them could let another refresh the cache while this call is still to run.
 */
static bool enter_chdir(struct task *task)
{
	path_invalidate(task->fs);
	return task->fs->refs > 1;
}

static void exit_chdir(struct task *task, s64 result)
{
	(void)result;
	path_invalidate(task->fs);
}

const struct syscall_handler chdir_handler = { enter_chdir, exit_chdir, false };

static void exit_chroot(struct task *task, s64 result)
{
	(void)task;
	if (result == 0) /* pivot_root moves every task of the namespace */
		path_invalidate_all();
}

const struct syscall_handler chroot_handler = { .exit = exit_chroot };

static void exit_unshare(struct task *task, s64 result)
{
	u64 flags = task->args[0];

	if (result < 0)
		return;
	if (flags & CLONE_FILES)
		task_unshare_fds(task);
	if (flags & (CLONE_FS | CLONE_NEWNS | CLONE_NEWUSER)) {
		task_unshare_fs(task);
		path_invalidate(task->fs);
	}
	if (flags & CLONE_NEWNS)
		task->fs->foreign = true;
}

const struct syscall_handler unshare_handler = { .exit = exit_unshare };

/* Whatever namespace it was: a lookup that treats the task as foreign is right for all. */
static void exit_setns(struct task *task, s64 result)
{
	if (result < 0)
		return;
	task_unshare_fs(task);
	task->fs->foreign = true;
	path_invalidate(task->fs);
}

const struct syscall_handler setns_handler = { .exit = exit_setns };

static void exit_ptrace(struct task *task, s64 result)
{
	if (result == -EPERM || result == -EACCES)
		denied_note(task, (long)task->args[0]);
}

const struct syscall_handler ptrace_handler = { .exit = exit_ptrace };

static bool enter_counted(struct task *task)
{
	if (task->call == CALL_IO_URING_SETUP)
		counters.io_uring_setups++;
	else
		counters.foreign_abi_calls++;
	task->fds->is_doubtful = true;
	return false;
}

static void watch(struct task *task)
{
	task->is_watched = true;
	task->fds->is_doubtful = true;
}

/* A thread that runs is watched from its next stop on: make it stop now. */
static void watch_thread(struct task *thread, void *context)
{
	const struct task *task = context;

	if (thread == task || thread->tgid != task->tgid)
		return;
	watch(thread);
	ptrace(PTRACE_INTERRUPT, thread->tid, 0, 0);
}

/*
 * A filter with a listener (SECCOMP_RET_USER_NOTIF) outranks the tracer's: the calls that the
 * listener lets go on no longer stop. From here on every call of the task and of its
 * children stops.
 */
static void exit_seccomp(struct task *task, s64 result)
{
	if (result < 0)
		return;
	counters.listeners++;
	watch(task);
	if (task->args[1] & SECCOMP_FILTER_FLAG_TSYNC)
		task_for_each(watch_thread, task);
}

const struct syscall_handler seccomp_handler = { .exit = exit_seccomp };

/* The exit of sched_getaffinity and sched_setaffinity: a binding of task.c ends before it. */
static void exit_affinity(struct task *task, s64 result)
{
	(void)task;
	(void)result;
}

const struct syscall_handler affinity_handler = { .exit = exit_affinity };

const struct syscall_handler count_handler = { .enter = enter_counted };
