// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events -> records in the ring buffer of the session's ftrace instance. Context: whatever the
 * caller is in, atomic included; nothing here sleeps, faults or locks. The ring buffer is written
 * directly: what the tracing core does around it (filters, triggers, stack traces) costs 200
 * instructions a record and has no use here.
 */
#include <linux/ring_buffer.h>
#include <linux/trace_events.h>

#include "emit.h"
#include "notice.h"
#include "scratch.h"

struct etrace_counters __percpu *etrace_counters;

static struct etrace_target target;
struct etrace_target __rcu *etrace_current_target;

static void count_lost_record(void)
{
	etrace_count(ETRACE_COUNT_LOST_RECORDS);
	etrace_notice_loss();
}

/* ---- streams ---- */

static int write_record(struct etrace_stream *stream, u16 flags)
{
	const struct etrace_split *split = &stream->split;
	struct etrace_reserved reserved;
	struct etrace_record *record;
	int err = etrace_reserve(&reserved, split->len);

	if (err)
		return err;
	record = &reserved.entry->record;
	record->upid = stream->upid;
	record->time_ns = stream->time_ns;
	record->cpu = stream->cpu;
	record->flags = flags;
	etrace_copy_words(reserved.entry->payload, split->buf, split->len);
	etrace_commit(&reserved);
	return 0;
}

/* After the first loss the rest of the event is of no use to a reader: it counts as lost too. */
static void stream_write(struct etrace_split *split, bool more)
{
	struct etrace_stream *stream = container_of(split, struct etrace_stream, split);
	u16 number = stream->n_records++ & ETRACE_RECORD_NUMBER_MASK;
	u16 flags = (u16)(number << ETRACE_RECORD_NUMBER_SHIFT);

	if (more)
		flags |= ETRACE_RECORD_MORE;
	if (stream->continues)
		flags |= ETRACE_RECORD_CONTINUES;
	stream->continues = true;
	preempt_disable_notrace();
	if (stream->session == READ_ONCE(etrace_session) &&
	    (stream->lost || write_record(stream, flags) == -ENOSPC)) {
		stream->lost = true;
		count_lost_record();
	}
	preempt_enable_notrace();
}

void etrace_stream_begin(struct etrace_stream *stream, const struct etrace_task *entry,
			 u64 time_ns)
{
	stream->upid = entry->upid;
	stream->time_ns = time_ns;
	stream->session = entry->session;
	stream->n_events = 0;
	stream->cpu = (u16)raw_smp_processor_id();
	stream->n_records = 0;
	stream->continues = false;
	stream->lost = false;
	etrace_split_begin(&stream->split, stream_write);
}

void etrace_stream_event(struct etrace_stream *stream, enum etrace_event event, const s64 *values,
			 const struct etrace_text *data)
{
	stream->n_events++;
	etrace_split_event(&stream->split, event, values, data);
}

u32 etrace_stream_item(struct etrace_stream *stream, enum etrace_data tag, u32 index,
		       const char *text, size_t len)
{
	return etrace_split_item(&stream->split, tag, index, text, len);
}

void etrace_stream_end_of_args(struct etrace_stream *stream)
{
	etrace_split_end_of_args(&stream->split);
}

void etrace_stream_end(struct etrace_stream *stream)
{
	etrace_split_end(&stream->split);
	if (stream->session == READ_ONCE(etrace_session))
		this_cpu_add(etrace_counters->n[stream->lost ? ETRACE_COUNT_LOST_EVENTS :
								ETRACE_COUNT_EVENTS],
			     stream->n_events);
}

/* ---- single events ---- */

void etrace_emit_in_pieces(const struct etrace_task *entry, u64 time_ns, enum etrace_event event,
			   const s64 *values, const struct etrace_text *data)
{
	struct etrace_stream *stream = etrace_emit_stream_get();

	etrace_stream_begin(stream, entry, time_ns);
	etrace_stream_event(stream, event, values, data);
	etrace_stream_end(stream);
	etrace_emit_stream_put();
}

void etrace_lose_event(int err)
{
	if (err != -ENOSPC)
		return;
	etrace_count(ETRACE_COUNT_LOST_EVENTS);
	count_lost_record();
}

void etrace_emit(const struct etrace_task *entry, u64 time_ns, enum etrace_event event,
		 const s64 *values, const struct etrace_text *data)
{
	struct etrace_whole whole;

	etrace_whole_of(&whole, event);
	etrace_emit_inline(entry, time_ns, whole, event, values, data);
}

/* ---- the instance ---- */

/* With these the tracing core hands out memory that is not the ring buffer's. */
#define DETOURS (EVENT_FILE_FL_FILTERED | EVENT_FILE_FL_SOFT_DISABLED | \
		 EVENT_FILE_FL_TRIGGER_COND | EVENT_FILE_FL_PID_FILTER)

/*
 * The instance's ring buffer is private to ftrace, but each reservation tells it. Nothing remains
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

int etrace_emit_open(const char *instance)
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
	count_lost_record();
}

void etrace_emit_close(const char *instance)
{
	RCU_INIT_POINTER(etrace_current_target, NULL);
	synchronize_rcu();
	check_buffer(instance);
}
