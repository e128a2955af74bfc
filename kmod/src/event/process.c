// SPDX-License-Identifier: GPL-2.0-only
/*
 * fork, vfork, clone, clone3 -> SysClone, SchedFork, SysCloneFailed; the end of a task -> Usage,
 * Exit; a thread's new name -> Comm. Context: tracepoints in the task, which is the parent for a
 * fork, atomic. The child does not run before sched_process_fork has returned: nothing of it is
 * missed.
 */
#include <linux/sched/signal.h>
#include <uapi/linux/sched.h>

#include "event/call.h"
#include "event/handlers.h"
#include "event/path.h"
#include "memory.h"
#include "record/emit.h"
#include "task/deferred.h"
#include "task/set.h"

#define CLONE3_BYTES offsetofend(struct clone_args, exit_signal) /* that all kernels know */

/* Of its own: to clear the structure costs more than a clone() that succeeds. */
static noinline s64 clone3_flags(const struct etrace_call *call)
{
	struct clone_args args = {};

	if (etrace_user_bytes(&args, call->args[0], CLONE3_BYTES)) {
		if (call->result != -EFAULT) /* the call could read it */
			etrace_count(ETRACE_COUNT_UNREAD_STRINGS);
		return 0;
	}
	return args.flags | args.exit_signal;
}

/* As clone() has them: with the exit signal in the low byte. */
static s64 clone_flags(const struct etrace_call *call)
{
	return call->kind == ETRACE_CALL_CLONE ? (s64)call->args[0] : clone3_flags(call);
}

/* With the lines of a clone that the task is in; fork and vfork print SchedFork alone. */
static void put_fork(struct etrace_task *entry, s64 child)
{
	struct pt_regs *regs = task_pt_regs(current);
	struct etrace_call call = { .kind = etrace_call_kind(regs) };
	struct etrace_scratch *space;
	u64 now = etrace_now();
	s64 flags;

	if (call.kind != ETRACE_CALL_CLONE && call.kind != ETRACE_CALL_CLONE3) {
		etrace_emit(&entry->origin, now, ETRACE_EV_SCHED_FORK, &child, NULL);
		return;
	}
	etrace_read_arguments(regs, call.args);
	flags = clone_flags(&call);
	space = etrace_scratch_get();
	etrace_stream_begin(&space->stream, &entry->origin, now);
	etrace_stream_event(&space->stream, ETRACE_EV_SYS_CLONE, &flags, NULL);
	etrace_stream_event(&space->stream, ETRACE_EV_SCHED_FORK, &child, NULL);
	etrace_stream_end(&space->stream);
	etrace_scratch_put(space);
}

void etrace_on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	struct etrace_task *entry;
	struct etrace_task *added = NULL;

	rcu_read_lock();
	entry = etrace_task_find(parent);
	if (entry || etrace_cgroup_holds(child))
		added = etrace_task_add(child);
	if (added)
		added->borrows_memory = child->mm && child->mm == parent->mm &&
					!same_thread_group(child, parent);
	if (entry && added)
		put_fork(entry, added->origin.upid);
	if (entry && etrace_memory_low())
		etrace_defer_refill(entry);
	rcu_read_unlock();
}

static void exit_clone(struct etrace_task *entry, const struct etrace_call *call)
{
	struct etrace_scratch *space;
	s64 flags;

	if (call->result >= 0 || etrace_call_restarts(call->result))
		return;
	flags = clone_flags(call);
	space = etrace_scratch_get();
	etrace_stream_begin(&space->stream, &entry->origin, etrace_now());
	etrace_stream_event(&space->stream, ETRACE_EV_SYS_CLONE, &flags, NULL);
	etrace_stream_event(&space->stream, ETRACE_EV_SYS_CLONE_FAILED, NULL, NULL);
	etrace_stream_end(&space->stream);
	etrace_scratch_put(space);
}

const struct etrace_handler etrace_clone = { .exit = exit_clone };

/* As wait() reports it: the status given to exit(), or the signal. */
static s64 exit_status(int code)
{
	int signal_number = code & 0x7f;

	return signal_number ? ETRACE_SIGNAL_STATUS_BASE + signal_number : (code >> 8) & 0xff;
}

static void put_exit_with_usage(struct etrace_task *entry, s64 status)
{
	struct etrace_scratch *space = etrace_scratch_get();

	etrace_stream_begin(&space->stream, &entry->origin, etrace_now());
	etrace_put_usage(&space->stream, entry);
	etrace_stream_event(&space->stream, ETRACE_EV_EXIT, &status, NULL);
	etrace_stream_end(&space->stream);
	etrace_scratch_put(space);
}

static void put_exit(struct etrace_task *entry, s64 status)
{
	if (!etrace_usage_is_due()) {
		etrace_usage_end_thread();
		etrace_emit(&entry->origin, etrace_now(), ETRACE_EV_EXIT, &status, NULL);
		return;
	}
	if (ETRACE_EXIT_HAS_MEMORY)
		etrace_usage_note_memory(entry);
	put_exit_with_usage(entry, status);
}

ETRACE_EXIT_PROBE(etrace_on_exit)
{
	struct etrace_task *entry;

	rcu_read_lock();
	entry = etrace_task_find(task);
	if (entry) {
		put_exit(entry, exit_status(task->exit_code));
		etrace_task_remove(entry);
	}
	rcu_read_unlock();
}

/* An execution's own Comm is printed with its New_proc. */
static bool is_of_exec(const struct task_struct *task)
{
	enum etrace_call_kind kind;

	if (task != current)
		return false;
	kind = etrace_call_kind(task_pt_regs(current));
	return kind == ETRACE_CALL_EXECVE || kind == ETRACE_CALL_EXECVEAT;
}

void etrace_on_rename(void *data, struct task_struct *task, const char *comm)
{
	struct etrace_text name = { comm, strnlen(comm, TASK_COMM_LEN - 1) };
	struct etrace_task *entry;

	rcu_read_lock();
	entry = etrace_task_find(task);
	if (entry && !is_of_exec(task))
		etrace_emit(&entry->origin, etrace_now(), ETRACE_EV_COMM, NULL, &name);
	rcu_read_unlock();
}
