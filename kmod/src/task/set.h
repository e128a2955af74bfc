/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The set of traced tasks: a hash by task pointer. Readers are under RCU; fork, exit and the
 * session's start and end write under one spinlock. Context: any but hard interrupts, where nothing
 * else is said; nothing sleeps.
 */
#ifndef ETRACE_SET_H
#define ETRACE_SET_H

#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/rculist.h>
#include <linux/types.h>

#include "task/entry.h"

struct signal_struct;

#define ETRACE_TASK_HASH_BITS 12
extern struct hlist_head etrace_task_hash[1 << ETRACE_TASK_HASH_BITS];

/*
 * False: the task is not traced. Looks at no entry and so needs no lock, not even RCU's. Opens and
 * closes of every task pay for it unless the session is isolated.
 */
static __always_inline bool etrace_task_may_be_traced(const struct task_struct *task)
{
	return READ_ONCE(etrace_task_hash[hash_ptr(task, ETRACE_TASK_HASH_BITS)].first);
}

/* Under rcu_read_lock(). NULL when the task is not traced. No lock, no memory barrier. */
static __always_inline struct etrace_task *etrace_task_find(const struct task_struct *task)
{
	struct etrace_task *entry;

	hlist_for_each_entry_rcu(entry, &etrace_task_hash[hash_ptr(task, ETRACE_TASK_HASH_BITS)],
				 node)
		if (entry->task == task)
			return entry;
	return NULL;
}

/*
 * The task is traced from now on; its entry, whether it is new or not. NULL without memory
 * (counted), for a task that is ending and for one of the kernel's own. Atomic.
 */
struct etrace_task *etrace_task_add(struct task_struct *task);
/*
 * From a probe of `entry->task` itself, at its exit or an execution: not found from now on. Atomic.
 * The caller stays under rcu_read_lock() or holds a reference while it uses `entry`.
 */
void etrace_task_remove(struct etrace_task *entry);

/*
 * `added` is called with each task that is added from now on; NULL: nothing is. A call of the one
 * before may still run.
 */
void etrace_task_set_watch(void (*added)(struct task_struct *task));

/*
 * Tasks may be added from now on. `root` belongs to the process whose end is reported, or is NULL.
 * Process context.
 */
void etrace_task_set_open(const struct signal_struct *root);
/* Forget all tasks. All probes are gone. Process context. */
void etrace_task_set_close(void);
u32 etrace_task_set_live(void);

/* ---- processes that a session traces from its start; process context ---- */

/* All threads of the process that `task` is in; -ESRCH when none is left. `upid`: of `task`. */
int etrace_roots_add_process(struct task_struct *task, u64 *upid);
/* What traced tasks have started before. */
void etrace_roots_add_descendants(void);

/* ---- ETRACE_OPTION_ISOLATE: untraced tasks pay nothing; process context ---- */

/* Whether others watch system calls; before our own probes are set. */
bool etrace_isolate_possible(void);
/* The set holds the roots, the probes are there. */
void etrace_isolate_begin(void);
/* Before our probes go: what others have asked for meanwhile works again. */
void etrace_isolate_end(void);

/* ---- the cgroup whose members a session traces ---- */

#ifdef CONFIG_CGROUPS
/* Trace the members of the cgroup at `path` and below, and who gets there. Process context. */
int etrace_cgroup_begin(const char *path);
/* The fork probe is gone already. Process context. */
void etrace_cgroup_end(void);
/* Does the session trace a cgroup that `task` is in? For the fork probe: CLONE_INTO_CGROUP. */
bool etrace_cgroup_holds(struct task_struct *task);
#else
static inline int etrace_cgroup_begin(const char *path)
{
	return -EOPNOTSUPP;
}

static inline void etrace_cgroup_end(void)
{
}

static inline bool etrace_cgroup_holds(struct task_struct *task)
{
	return false;
}
#endif

#endif /* ETRACE_SET_H */
