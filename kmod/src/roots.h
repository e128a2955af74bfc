/* SPDX-License-Identifier: GPL-2.0-only */
/* Whom a session traces from its start on. Process context. */
#ifndef ETRACE_ROOTS_H
#define ETRACE_ROOTS_H

#include <linux/errno.h>
#include <linux/types.h>

struct task_struct;

/* All threads of the process that `task` is in; -ESRCH when none is left. `upid`: of `task`. */
int etrace_roots_add_process(struct task_struct *task, u64 *upid);
/* What traced tasks have started before. */
void etrace_roots_add_descendants(void);

/* Members of the cgroup at `path` and below, and who gets there until etrace_cgroup_end(). */
#ifdef CONFIG_CGROUPS
int etrace_cgroup_begin(const char *path);
void etrace_cgroup_end(void);
#else
static inline int etrace_cgroup_begin(const char *path)
{
	return -EOPNOTSUPP;
}

static inline void etrace_cgroup_end(void)
{
}
#endif

#endif /* ETRACE_ROOTS_H */
