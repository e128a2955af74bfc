// SPDX-License-Identifier: GPL-2.0-only
/*
 * A session: from the instance and the probes to the last record. Process context, one caller at a
 * time. The module is pinned while a session runs: unloading it would empty the ring buffers that
 * hold its records.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/workqueue.h>

#include "etrace.h"
#include "isolate.h"
#include "notice.h"
#include "record.h"
#include "roots.h"
#include "session.h"
#include "task_set.h"
#include "work.h"

u32 etrace_options;
u32 etrace_session;

static DEFINE_MUTEX(session_lock);
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

static void reset_counters(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(etrace_counters, cpu), 0, sizeof(struct etrace_counters));
}

static void sum_counters(u64 *sums)
{
	int cpu, i;

	for_each_possible_cpu(cpu)
		for (i = 0; i < ETRACE_N_COUNTERS; i++)
			sums[i] += READ_ONCE(per_cpu_ptr(etrace_counters, cpu)->n[i]);
}

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
	err = etrace_emit_open(name);
	if (!err)
		return 0;
	*reason = why_not_open(err);
	trace_array_put(session.instance);
	return err;
}

static void close_instance(void)
{
	etrace_emit_close(session.instance_name);
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
			*reason = "the process ended, is the kernel's, or there was no memory";
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
	reset_counters();
	etrace_notice_reset(session.number);
	etrace_work_begin();
	etrace_options = request->options;
	WRITE_ONCE(etrace_session, session.number);
	etrace_task_set_open(request->root ? request->root->signal : NULL);
}

/* No probe is left: no work of a task, no entry, no target. */
static void close_session(void)
{
	/* what is left by then prints nothing any more */
	this_cpu_add(etrace_counters->n[ETRACE_COUNT_LOST_EVENTS], etrace_work_wait());
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

/* Probes first, roots second: what a root does from then on is seen whole. */
static int begin(const struct etrace_session_request *request, const char **reason)
{
	int err;

	session.state = ETRACE_STATE_IDLE; /* the figures of the last session are gone */
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
	session.state = ETRACE_STATE_RUNNING;
	return 0;
}

static const char *obstacle(const struct etrace_session_request *request)
{
	if (session.state == ETRACE_STATE_RUNNING)
		return "a session runs already: stop it first";
	if (request->options & ETRACE_OPTION_ISOLATE && !etrace_isolate_possible())
		return "others watch system calls (perf trace, bpftrace?): start without isolation";
	return NULL;
}

static int start_locked(const struct etrace_session_request *request, const char **reason)
{
	int err;

	*reason = obstacle(request);
	if (*reason)
		return -EBUSY;
	err = open_instance(request->instance, reason);
	if (err)
		return err;
	return begin(request, reason);
}

static void fill_status(struct etrace_session_status *status)
{
	memset(status, 0, sizeof(*status));
	status->state = session.state;
	status->number = session.number;
	status->options = etrace_options;
	status->owner_pid = session.owner_pid;
	status->root_upid = session.root_upid;
	status->started_ns = session.started_ns;
	strscpy(status->instance, session.instance_name, sizeof(status->instance));
	sum_counters(status->counters);
	status->counters[ETRACE_COUNT_LIVE] = etrace_task_set_live();
}

int etrace_session_start(const struct etrace_session_request *request,
			 struct etrace_session_status *status, const char **reason)
{
	int err;

	if (!try_module_get(THIS_MODULE)) {
		*reason = "the module is being unloaded";
		return -ENODEV;
	}
	mutex_lock(&session_lock);
	err = start_locked(request, reason);
	fill_status(status);
	mutex_unlock(&session_lock);
	if (err)
		module_put(THIS_MODULE);
	return err;
}

static void stop_locked(void)
{
	end();
	session.state = ETRACE_STATE_STOPPED;
	etrace_notice(ETRACE_NOTICE_STOPPED);
}

int etrace_session_stop(u32 number, struct etrace_session_status *status)
{
	bool runs;

	mutex_lock(&session_lock);
	runs = session.state == ETRACE_STATE_RUNNING && (!number || number == session.number);
	if (runs)
		stop_locked();
	fill_status(status);
	mutex_unlock(&session_lock);
	if (!runs)
		return -ENOENT;
	module_put(THIS_MODULE);
	return 0;
}

/* A closing socket does not wait for the end of the session. */
static u32 orphan;

static void stop_orphan(struct work_struct *work)
{
	struct etrace_session_status status;

	etrace_session_stop(READ_ONCE(orphan), &status);
}

static DECLARE_WORK(stop_orphan_work, stop_orphan);

/* The lock is not waited for: its holder may be stopping the session for another socket. */
void etrace_session_owner_gone(u32 portid)
{
	u32 number = READ_ONCE(session.number);

	if (READ_ONCE(session.state) != ETRACE_STATE_RUNNING ||
	    READ_ONCE(session.owner_portid) != portid)
		return;
	WRITE_ONCE(orphan, number);
	schedule_work(&stop_orphan_work);
}

void etrace_session_status(struct etrace_session_status *status)
{
	mutex_lock(&session_lock);
	fill_status(status);
	mutex_unlock(&session_lock);
}

void etrace_session_quiesce(void)
{
	flush_work(&stop_orphan_work);
	etrace_notice_flush();
	etrace_synchronize_tasks(); /* who called module_put() has left our code */
}
