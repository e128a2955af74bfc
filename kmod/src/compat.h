/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernel releases, 5.10 to 7.2: the only file that looks at a version. Each
 * branch names the first release that has it, and why.
 */
#ifndef ETRACE_COMPAT_H
#define ETRACE_COMPAT_H

#include <linux/ring_buffer.h>
#include <linux/sched.h>
#include <linux/thread_info.h>
#include <linux/trace.h>
#include <linux/trace_events.h>
#include <linux/version.h>

/*
 * Linux 6.8 (d23569979ca1): an instance may have the events of named systems only. Without, it gets
 * a directory for each event of the kernel.
 */
static inline struct trace_array *etrace_trace_array_get(const char *name)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
	return trace_array_get_by_name(name, "etrace");
#else
	return trace_array_get_by_name(name);
#endif
}

/* Linux 6.3 (04aabc32fb20): ring_buffer_unlock_commit() has lost the event argument. */
static inline void etrace_ring_buffer_commit(struct trace_buffer *buffer,
					     struct ring_buffer_event *event)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	ring_buffer_unlock_commit(buffer);
#else
	ring_buffer_unlock_commit(buffer, event);
#endif
}

/*
 * Linux 5.11 (524666cb5de7): the bit which makes system calls of a task pass the tracepoints has
 * moved from the flags of the architecture's thread_info to those of the generic entry code; an
 * architecture that does not use the generic entry code keeps it where it was.
 */
#ifdef CONFIG_GENERIC_ENTRY
static inline void etrace_syscall_tracepoints_set(struct task_struct *task)
{
	set_task_syscall_work(task, SYSCALL_TRACEPOINT);
}

static inline void etrace_syscall_tracepoints_clear(struct task_struct *task)
{
	clear_task_syscall_work(task, SYSCALL_TRACEPOINT);
}
#else
static inline void etrace_syscall_tracepoints_set(struct task_struct *task)
{
	set_tsk_thread_flag(task, TIF_SYSCALL_TRACEPOINT);
}

static inline void etrace_syscall_tracepoints_clear(struct task_struct *task)
{
	clear_tsk_thread_flag(task, TIF_SYSCALL_TRACEPOINT);
}
#endif

/*
 * Exported to modules since Linux 5.12 or so; Kbuild looks. Without it synchronize_rcu() does where
 * the kernel is not preemptible, as Debian's 5.10 is.
 */
static inline void etrace_synchronize_tasks(void)
{
#ifdef ETRACE_RCU_TASKS_EXPORTED
	synchronize_rcu_tasks();
#else
	synchronize_rcu();
#endif
}

#endif /* ETRACE_COMPAT_H */
