/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One session after the other, as control.c drives them. Process context. Nothing here waits for a
 * session that is being started or stopped: the state shows it, and a work item stops a session.
 */
#ifndef ETRACE_SESSION_H
#define ETRACE_SESSION_H

#include <linux/list.h>
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
	u32 number; /* 0: no session was there yet, or one is being started */
	u32 options;
	u32 owner_pid;
	u64 root_upid;
	u64 started_ns;
	char instance[ETRACE_INSTANCE_BYTES];
	u64 counters[ETRACE_N_COUNTERS];
};

/* Who asked for the end of a session and is notified of it. Embedded in what is needed to do so. */
struct etrace_session_waiter {
	struct list_head node;
	u32 portid; /* netlink socket */
	/* Called once: `status` of the ended session; NULL: the socket is closed */
	void (*say)(struct etrace_session_waiter *waiter,
		    const struct etrace_session_status *status);
};

/*
 * `status`: of the session that this call started. `reason`: the obstacle, for the user, when the
 * result is not 0. -EBUSY while another session runs, is being started or stopped.
 */
int etrace_session_start(const struct etrace_session_request *request,
			 struct etrace_session_status *status, const char **reason);
/*
 * End the session `number` (0: the running one), if it is not ending already; 0: `waiter` will be
 * notified. -ENOENT when none runs; -EBUSY while one is being started.
 */
int etrace_session_stop(u32 number, struct etrace_session_waiter *waiter, const char **reason);
/* The socket `portid` was closed. */
void etrace_session_owner_gone(u32 portid);
void etrace_session_status(struct etrace_session_status *status);
/* module_exit: all waiters were notified that the last session ended. */
void etrace_session_flush(void);

/* The netlink side, control.c. */
int etrace_control_register(void);
void etrace_control_unregister(void);

#endif /* ETRACE_SESSION_H */
