/* SPDX-License-Identifier: GPL-2.0-only */
/* One session after the other, as control.c drives them. Process context; all of it may sleep. */
#ifndef ETRACE_SESSION_H
#define ETRACE_SESSION_H

#include <linux/types.h>

#include "etrace/control.h"

struct task_struct;

struct etrace_session_request {
	struct task_struct *root; /* or a cgroup; the caller holds a reference during the call */
	const char *cgroup;
	const char *instance;
	u32 options;
	u32 owner_portid; /* netlink socket */
};

struct etrace_session_status {
	u32 state; /* enum etrace_state */
	u32 number;
	u32 options;
	u32 owner_pid;
	u64 root_upid;
	u64 started_ns;
	char instance[ETRACE_INSTANCE_BYTES];
	u64 counters[ETRACE_N_COUNTERS];
};

/*
 * `status`: of the session that this call started or stopped. `reason`: what is in the way, for the
 * user, when the answer is not 0.
 */
int etrace_session_start(const struct etrace_session_request *request,
			 struct etrace_session_status *status, const char **reason);
/* -ENOENT when none runs, or not session `number` (0: whichever runs). */
int etrace_session_stop(u32 number, struct etrace_session_status *status);
/* The socket `portid` was closed. */
void etrace_session_owner_gone(u32 portid);
void etrace_session_status(struct etrace_session_status *status);
/* module_exit: nothing of us runs any more when this returns. */
void etrace_session_quiesce(void);

#endif /* ETRACE_SESSION_H */
