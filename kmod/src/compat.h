/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernel releases: the only file that looks at a version. Each branch names the
 * first release that has it, and why.
 */
#ifndef ETRACE_COMPAT_H
#define ETRACE_COMPAT_H

#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/mm.h>
#include <linux/ring_buffer.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/seqlock.h>
#include <linux/thread_info.h>
#include <linux/trace.h>
#include <linux/trace_events.h>
#include <linux/version.h>
#include <uapi/linux/close_range.h>

#define ETRACE_LINUX_SINCE(major, minor) (KERNEL_VERSION(major, minor, 0) <= LINUX_VERSION_CODE)

/*
 * Linux 6.8 (d23569979ca1): an instance may have the events of named systems only. Without, it gets
 * a directory for each event of the kernel.
 */
static inline struct trace_array *etrace_trace_array_get(const char *name)
{
#if ETRACE_LINUX_SINCE(6, 8)
	return trace_array_get_by_name(name, "etrace");
#else
	return trace_array_get_by_name(name);
#endif
}

/* Linux 6.3 (04aabc32fb20): ring_buffer_unlock_commit() has lost the event argument. */
static inline void etrace_ring_buffer_commit(struct trace_buffer *buffer,
					     struct ring_buffer_event *event)
{
#if ETRACE_LINUX_SINCE(6, 3)
	ring_buffer_unlock_commit(buffer);
#else
	ring_buffer_unlock_commit(buffer, event);
#endif
}

/*
 * Threads that run no user code. Those of io_uring are threads of the process since Linux 5.12,
 * those of vhost since 6.4 (54e6842d0775).
 */
#ifdef PF_USER_WORKER
#define ETRACE_KERNEL_TASKS (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)
#else
#define ETRACE_KERNEL_TASKS (PF_KTHREAD | PF_IO_WORKER)
#endif

/*
 * Linux 5.11 (524666cb5de7): the bit which makes system calls of a task pass the tracepoints is
 * reached by other functions; where it lies depends on the architecture.
 */
#if ETRACE_LINUX_SINCE(5, 11)
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
#elif defined(CONFIG_PREEMPTION) && defined(CONFIG_TASKS_RCU)
#error "a preemptible kernel that does not export synchronize_rcu_tasks() cannot unload the module"
#else
	synchronize_rcu();
#endif
}

/*
 * Working directory without a reference, under rcu_read_lock(). fs_struct had a spinlock and a
 * sequence counter, and has a seqlock_t in Linux 7.2: that begins with the same counter.
 */
static inline void etrace_cwd_rcu(struct fs_struct *fs, struct path *path)
{
	seqcount_spinlock_t *count = (seqcount_spinlock_t *)&fs->seq;
	unsigned int seq;

	BUILD_BUG_ON(offsetof(seqlock_t, seqcount));
	do {
		seq = read_seqcount_begin(count);
		*path = fs->pwd;
	} while (read_seqcount_retry(count, seq));
}

/* Linux 5.12 (02f92b3868a1): permission takes the mount's mapping of users into account. */
static inline int etrace_path_permission(const struct path *path, int mask)
{
#if ETRACE_LINUX_SINCE(5, 12)
	return path_permission(path, mask);
#else
	return inode_permission(d_inode(path->dentry), mask);
#endif
}

/*
 * A variable that is written before it is read. Kernels with INIT_STACK_ALL_ZERO, as Debian's are,
 * otherwise clear it first.
 */
#if __has_attribute(__uninitialized__)
#define ETRACE_UNINITIALIZED __attribute__((__uninitialized__))
#else
#define ETRACE_UNINITIALIZED
#endif

/*
 * Linux 6.16 (0ae1436cab74): the probe of sched_process_exit has a second argument, and the task
 * still has its memory.
 */
#if ETRACE_LINUX_SINCE(6, 16)
#define ETRACE_EXIT_HAS_MEMORY 1
#define ETRACE_EXIT_PROBE(name) void name(void *data, struct task_struct *task, bool group_dead)
#else
#define ETRACE_EXIT_HAS_MEMORY 0
#define ETRACE_EXIT_PROBE(name) void name(void *data, struct task_struct *task)
#endif

/*
 * Resident memory in pages. Linux 6.2 (f1a7941243c1): a counter has a part on each CPU, up to 128
 * pages or more, which get_mm_rss() leaves out. Before that the task itself keeps some.
 */
static inline unsigned long etrace_mm_rss(struct mm_struct *mm)
{
#if ETRACE_LINUX_SINCE(6, 2)
	return percpu_counter_sum_positive(&mm->rss_stat[MM_FILEPAGES]) +
	       percpu_counter_sum_positive(&mm->rss_stat[MM_ANONPAGES]) +
	       percpu_counter_sum_positive(&mm->rss_stat[MM_SHMEMPAGES]);
#else
	long pages = get_mm_rss(mm);

#ifdef SPLIT_RSS_COUNTING
	pages += current->rss_stat.count[MM_FILEPAGES] + current->rss_stat.count[MM_ANONPAGES] +
		 current->rss_stat.count[MM_SHMEMPAGES];
#endif
	return max(pages, 0L);
#endif
}

/* Linux 5.17 (2f824d4d197e): a dump of memory sets SIGNAL_GROUP_EXIT too. */
#ifdef SIGNAL_GROUP_COREDUMP
#define ETRACE_SIGNAL_ALL_END (SIGNAL_GROUP_EXIT | SIGNAL_GROUP_COREDUMP)
#else
#define ETRACE_SIGNAL_ALL_END SIGNAL_GROUP_EXIT
#endif

/* Linux 5.11 (582f1fb6b721): a flag of close_range() that older kernels refuse. */
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC BIT(2)
#endif

/* Since Linux 5.12 or so in linux/magic.h; before, only fs/fuse knew it. */
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

#endif /* ETRACE_COMPAT_H */
