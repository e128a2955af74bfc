// SPDX-License-Identifier: GPL-2.0-only
/* The ring buffer of the session's ftrace instance. Process context but for losses. */
#include <linux/trace_events.h>

#include "record/target.h"
#include "state.h"

static struct etrace_target target;
struct etrace_target __rcu *etrace_current_target;

void etrace_lose_record(void)
{
	etrace_count(ETRACE_COUNT_LOST_RECORDS);
	etrace_notice_loss();
}

/* With these the tracing core hands out memory that is not the ring buffer's. */
#define DETOURS (EVENT_FILE_FL_FILTERED | EVENT_FILE_FL_SOFT_DISABLED | \
		 EVENT_FILE_FL_TRIGGER_COND | EVENT_FILE_FL_PID_FILTER)

/*
 * The instance's ring buffer is private to ftrace, but each reservation shows it. Nothing remains
 * of this one.
 */
static struct trace_buffer *find_buffer(struct trace_event_file *file)
{
	struct trace_event_buffer buffer;

	if (file->flags & DETOURS)
		return ERR_PTR(-EBUSY);
	if (!trace_event_buffer_reserve(&buffer, file, sizeof(struct etrace_entry)))
		return ERR_PTR(-ENOSPC);
	ring_buffer_discard_commit(buffer.buffer, buffer.event);
	return buffer.buffer;
}

static struct trace_event_file *get_event_file(const char *instance)
{
	return trace_get_event_file(instance, ETRACE_TRACE_SYSTEM, "etrace_record");
}

static int aim_at(struct trace_event_file *file)
{
	struct trace_buffer *buffer = find_buffer(file);

	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	/*
	 * When the module goes, ftrace empties the instances that may hold records of its events: a
	 * new event may get our type's number, and would be asked to print what we wrote.
	 */
	set_bit(EVENT_FILE_FL_WAS_ENABLED_BIT, &file->flags);
	target.buffer = buffer;
	target.type = (u16)file->event_call->event.type;
	rcu_assign_pointer(etrace_current_target, &target);
	return 0;
}

int etrace_target_open(const char *instance)
{
	struct trace_event_file *file = get_event_file(instance);
	int err;

	if (IS_ERR(file))
		return PTR_ERR(file);
	err = aim_at(file);
	trace_put_event_file(file); /* or the module would hold itself; the instance keeps it */
	return err;
}

static bool has_lost(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		if (per_cpu_ptr(etrace_counters, cpu)->n[ETRACE_COUNT_LOST_RECORDS])
			return true;
	return false;
}

/*
 * A snapshot of the instance swaps its buffer: what we wrote since is out of the readers' sight.
 * Not looked for after a loss, which says enough: in a full buffer ftrace would count another one.
 */
static void check_buffer(const char *instance)
{
	struct trace_event_file *file;
	struct trace_buffer *buffer;

	if (has_lost())
		return;
	file = get_event_file(instance);
	if (IS_ERR(file))
		return;
	buffer = find_buffer(file);
	trace_put_event_file(file);
	if (IS_ERR(buffer) || buffer == target.buffer)
		return;
	pr_warn("etrace: instance %s: a snapshot was taken, records are missing\n", instance);
	etrace_count(ETRACE_COUNT_LOST_EVENTS);
	etrace_lose_record();
}

void etrace_target_close(const char *instance)
{
	RCU_INIT_POINTER(etrace_current_target, NULL);
	synchronize_rcu();
	check_buffer(instance);
}
