/* SPDX-License-Identifier: GPL-2.0-only */
/* The cgroup whose members a session traces. */
#ifndef ETRACE_CGROUP_H
#define ETRACE_CGROUP_H

#include <linux/errno.h>
#include <linux/types.h>

struct task_struct;

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

#endif /* ETRACE_CGROUP_H */
