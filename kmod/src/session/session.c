// SPDX-License-Identifier: GPL-2.0-only
/*
 * A session: from the instance and the probes to the last record. Process context. The module is
 * pinned while a session runs: unloading it would empty the ring buffers that hold its records.
 *
 * The state is the lock. The caller that sets it to STARTING (a START) or STOPPING (the work) owns
 * the data of this file until it sets another state; session_lock guards the change and is never
 * held for long. A request must not wait: generic netlink holds a lock during it that registering a
 * family takes for writing, and all other families would wait for that.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "probe/hooks.h"
#include "record/emit.h"
#include "record/target.h"
#include "session/session.h"
#include "state.h"
#include "task/deferred.h"
#include "task/set.h"

static DEFINE_MUTEX(session_lock); /* of the state and of `waiters` */
static LIST_HEAD(waiters); /* for the end of the session that is being stopped */
static struct {
	u32 state; /* enum etrace_state */
	u32 number;
	u32 owner_portid;
	u32 owner_pid;
	u64 root_upid;
	u64 started_ns;
	struct trace_array *instance; /* a reference is held while the session runs */
	char instance_name[ETRACE_INSTANCE_BYTES];
} session;

static const char *why_not_open(int err)
{
	switch (err) {
	case -ENOSPC:
		return "tracing_on of the instance is 0, or its buffer is full: clear its `trace`";
	case -EBUSY:
		return "the event etrace/etrace_record has a filter or trigger: remove it";
	default:
		return "the ftrace instance does not have the event etrace/etrace_record";
	}
}

/* Makes the instance when it is not there; it stays when the session is over. */
static int open_instance(const char *name, const char **reason)
{
	int err;

	session.instance = etrace_trace_array_get(name);
	if (!session.instance) {
		*reason = "cannot make or find the ftrace instance: is tracefs locked down?";
		return -EACCES;
	}
	err = etrace_target_open(name);
	if (!err)
		return 0;
	*reason = why_not_open(err);
	trace_array_put(session.instance);
	return err;
}

static void close_instance(void)
{
	etrace_target_close(session.instance_name);
	trace_array_put(session.instance);
}

static int add_roots(const struct etrace_session_request *request, const char **reason)
{
	int err;

	session.root_upid = 0;
	if (request->cgroup) {
		err = etrace_cgroup_begin(request->cgroup);
		if (err)
			*reason = "no such cgroup of version 2: give its path below the mount, /";
	} else {
		err = etrace_roots_add_process(request->root, &session.root_upid);
		if (err)
			*reason = "the process exited, is a kernel thread, or memory ran out";
	}
	if (!err && request->options & ETRACE_OPTION_DESCENDANTS)
		etrace_roots_add_descendants();
	return err;
}

static void describe(const struct etrace_session_request *request)
{
	session.number++;
	session.owner_portid = request->owner_portid;
	session.owner_pid = (u32)task_tgid_nr(current);
	session.started_ns = etrace_now();
	strscpy(session.instance_name, request->instance, sizeof(session.instance_name));
}

/* Probes add the children of traced tasks to the set from here on. */
static void open_session(const struct etrace_session_request *request)
{
	describe(request);
	etrace_counters_reset();
	etrace_notice_reset(session.number);
	etrace_work_begin(session.number);
	etrace_options = request->options;
	WRITE_ONCE(etrace_session, session.number);
	etrace_task_set_open(request->root ? request->root->signal : NULL);
}

/* No probe is left: no work of a task, no entry, no target. */
static void close_session(void)
{
	/* tasks that are left by then print nothing more */
	etrace_count_n(ETRACE_COUNT_LOST_EVENTS, etrace_work_wait());
	WRITE_ONCE(etrace_session, 0);
	etrace_task_set_close();
	close_instance();
}

static void end(void)
{
	etrace_isolate_end();
	etrace_hooks_unregister();
	etrace_cgroup_end();
	close_session();
}

/* Probes first, roots second: all later calls of a root are complete. */
static int begin(const struct etrace_session_request *request, const char **reason)
{
	int err;

	open_session(request);
	err = etrace_hooks_register(request->options);
	if (err) {
		*reason = "the kernel's tracepoints could not be probed";
		close_session();
		return err;
	}
	err = add_roots(request, reason);
	if (err) {
		end();
		return err;
	}
	if (request->options & ETRACE_OPTION_ISOLATE)
		etrace_isolate_begin();
	return 0;
}

static void fill_status_locked(struct etrace_session_status *status)
{
	memset(status, 0, sizeof(*status));
	status->state = session.state;
	if (session.state == ETRACE_STATE_IDLE || session.state == ETRACE_STATE_STARTING)
		return; /* there is nothing to say, or it is being written */
	status->number = session.number;
	status->options = etrace_options;
	status->owner_pid = session.owner_pid;
	status->root_upid = session.root_upid;
	status->started_ns = session.started_ns;
	strscpy(status->instance, session.instance_name, sizeof(status->instance));
	etrace_counters_sum(status->counters);
	status->counters[ETRACE_COUNT_LIVE] = etrace_task_set_live();
}

/* ---- start ---- */

static const char *const in_the_way[ETRACE_N_STATES] = {
	[ETRACE_STATE_RUNNING] = "a session is already running: stop it first",
	[ETRACE_STATE_STOPPING] = "the last session is still being stopped: try again",
	[ETRACE_STATE_STARTING] = "a session is being started already",
};

/* 0: the caller owns this file's data until it calls settle(). */
static int claim(u32 *before, const char **reason)
{
	mutex_lock(&session_lock);
	*before = session.state;
	*reason = in_the_way[*before];
	if (!*reason)
		session.state = ETRACE_STATE_STARTING;
	mutex_unlock(&session_lock);
	return *reason ? -EBUSY : 0;
}

static void settle(u32 state, struct etrace_session_status *status)
{
	mutex_lock(&session_lock);
	session.state = state;
	fill_status_locked(status);
	mutex_unlock(&session_lock);
}

/* `state`: the state after a failure. */
static int start_claimed(const struct etrace_session_request *request, u32 *state,
			 const char **reason)
{
	int err;

	if (request->options & ETRACE_OPTION_ISOLATE && !etrace_isolate_possible()) {
		*reason = "others watch system calls (perf, bpftrace?): start without isolation";
		return -EBUSY;
	}
	err = open_instance(request->instance, reason);
	if (err)
		return err;
	*state = ETRACE_STATE_IDLE; /* the figures of the last session are gone */
	return begin(request, reason);
}

static int start_pinned(const struct etrace_session_request *request,
			struct etrace_session_status *status, const char **reason)
{
	u32 state;
	int err = claim(&state, reason);

	if (err)
		return err;
	err = start_claimed(request, &state, reason);
	settle(err ? state : ETRACE_STATE_RUNNING, status);
	return err;
}

int etrace_session_start(const struct etrace_session_request *request,
			 struct etrace_session_status *status, const char **reason)
{
	int err;

	if (!try_module_get(THIS_MODULE)) {
		*reason = "the module is being unloaded";
		return -ENODEV;
	}
	err = start_pinned(request, status, reason);
	if (err)
		module_put(THIS_MODULE);
	return err;
}

/* ---- stop ---- */

static void report_all(struct list_head *ended, const struct etrace_session_status *status)
{
	struct etrace_session_waiter *waiter, *next;

	list_for_each_entry_safe(waiter, next, ended, node) {
		list_del(&waiter->node);
		waiter->say(waiter, status);
	}
}

/* Unloading waits for this work (etrace_session_flush), so it may go on when the pin is gone. */
static void stop_session(struct work_struct *work)
{
	struct etrace_session_status status;
	LIST_HEAD(ended);

	end();
	mutex_lock(&session_lock);
	session.state = ETRACE_STATE_STOPPED;
	fill_status_locked(&status);
	list_splice_init(&waiters, &ended);
	etrace_notice(ETRACE_NOTICE_STOPPED); /* with this session's number */
	mutex_unlock(&session_lock);
	module_put(THIS_MODULE); /* before the answers: their receivers may unload it at once */
	report_all(&ended, &status);
}

static DECLARE_WORK(stop_work, stop_session);

static void begin_to_stop_locked(void)
{
	if (session.state == ETRACE_STATE_STOPPING)
		return;
	session.state = ETRACE_STATE_STOPPING;
	queue_work(system_long_wq, &stop_work);
}

static int why_not_stop_locked(u32 number, const char **reason)
{
	switch (session.state) {
	case ETRACE_STATE_STARTING:
		*reason = "a session is being started: try again";
		return -EBUSY;
	case ETRACE_STATE_RUNNING:
	case ETRACE_STATE_STOPPING:
		if (!number || number == session.number)
			return 0;
		fallthrough;
	default:
		*reason = "no such session is running";
		return -ENOENT;
	}
}

int etrace_session_stop(u32 number, struct etrace_session_waiter *waiter, const char **reason)
{
	int err;

	mutex_lock(&session_lock);
	err = why_not_stop_locked(number, reason);
	if (!err) {
		list_add_tail(&waiter->node, &waiters);
		begin_to_stop_locked();
	}
	mutex_unlock(&session_lock);
	return err;
}

static void forget_locked(u32 portid, struct list_head *forgotten)
{
	struct etrace_session_waiter *waiter, *next;

	list_for_each_entry_safe(waiter, next, &waiters, node)
		if (waiter->portid == portid)
			list_move(&waiter->node, forgotten);
}

/* The next owner of the socket's number gets no answer to this one's request. */
void etrace_session_owner_gone(u32 portid)
{
	LIST_HEAD(forgotten);

	mutex_lock(&session_lock);
	forget_locked(portid, &forgotten);
	if (session.state == ETRACE_STATE_RUNNING && session.owner_portid == portid)
		begin_to_stop_locked();
	mutex_unlock(&session_lock);
	report_all(&forgotten, NULL);
}

void etrace_session_status(struct etrace_session_status *status)
{
	mutex_lock(&session_lock);
	fill_status_locked(status);
	mutex_unlock(&session_lock);
}

void etrace_session_flush(void)
{
	flush_work(&stop_work);
	etrace_notice_flush();
}
