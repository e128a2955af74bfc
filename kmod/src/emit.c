// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events -> records in the ring buffer of the session's ftrace instance. Context: whatever the
 * caller is in, atomic included; nothing here sleeps, faults or locks. The ring buffer is written
 * directly: what the tracing core does around it (filters, triggers, stack traces) costs 200
 * instructions a record and has no use here.
 */
#define ETRACE_EVENTS_TABLES
#include <linux/ring_buffer.h>
#include <linux/trace_events.h>

#include "etrace.h"
#include "notice.h"
#include "record.h"
#include "scratch.h"

struct etrace_counters __percpu *etrace_counters;

/*
 * Where records go. Set while a session runs; read with preemption off, which RCU waits for, and
 * after a look at the session: late work of an earlier one does not write here.
 */
struct target {
	struct trace_buffer *buffer;
	u16 type; /* of our trace event */
};

static struct target target;
static struct target __rcu *current_target;

/* A record between reserve and commit: preemption is off. */
struct reserved {
	struct trace_buffer *buffer;
	struct ring_buffer_event *event;
	struct etrace_entry *entry;
};

/* As ring_buffer_event_data(), without a call for records of less than 112 bytes. */
static __always_inline void *data_of(struct ring_buffer_event *event)
{
	if (likely(event->type_len - 1u < RINGBUF_TYPE_DATA_TYPE_LEN_MAX))
		return event->array;
	return ring_buffer_event_data(event);
}

/* -ENOSPC: a loss. -ESHUTDOWN: the session is over, nobody expects the record. */
static inline int reserve(struct reserved *reserved, size_t payload_bytes)
{
	const struct target *to = rcu_dereference_sched(current_target);
	struct etrace_entry *entry;

	if (unlikely(!to))
		return -ESHUTDOWN;
	reserved->buffer = to->buffer;
	reserved->event = ring_buffer_lock_reserve(to->buffer, sizeof(*entry) + payload_bytes);
	if (unlikely(!reserved->event))
		return -ENOSPC;
	entry = data_of(reserved->event);
	entry->ent = (struct trace_entry){ .type = to->type, .pid = current->pid };
	entry->record.payload = (u32)(sizeof(*entry) | payload_bytes << 16);
	reserved->entry = entry;
	return 0;
}

static inline void commit(const struct reserved *reserved)
{
	etrace_ring_buffer_commit(reserved->buffer, reserved->event);
	etrace_count(ETRACE_COUNT_RECORDS);
}

static void count_lost_record(void)
{
	etrace_count(ETRACE_COUNT_LOST_RECORDS);
	etrace_notice_loss();
}

/* ---- streams ---- */

static int write_record(struct etrace_stream *stream, u16 flags)
{
	const struct etrace_split *split = &stream->split;
	struct reserved reserved;
	struct etrace_record *record;
	int err = reserve(&reserved, split->len);

	if (err)
		return err;
	record = &reserved.entry->record;
	record->upid = stream->upid;
	record->time_ns = stream->time_ns;
	record->cpu = stream->cpu;
	record->flags = flags;
	memcpy(reserved.entry->payload, split->buf, split->len);
	commit(&reserved);
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

static void emit_in_pieces(const struct etrace_task *entry, u64 time_ns, enum etrace_event event,
			   const s64 *values, const struct etrace_text *data)
{
	struct etrace_stream *stream = etrace_emit_stream_get();

	etrace_stream_begin(stream, entry, time_ns);
	etrace_stream_event(stream, event, values, data);
	etrace_stream_end(stream);
	etrace_emit_stream_put();
}

static void lose_event(int err)
{
	if (err != -ENOSPC)
		return;
	etrace_count(ETRACE_COUNT_LOST_EVENTS);
	count_lost_record();
}

/* False: nothing was written, the text may be too long for one record. Preemption is off. */
static __always_inline bool emit_whole(s64 upid, u64 time_ns, struct etrace_whole *whole,
				       enum etrace_event event, const s64 *values,
				       const struct etrace_text *data)
{
	struct reserved reserved;
	struct etrace_record *record;
	int err;

	if (unlikely(!etrace_whole_measure(whole, data)))
		return false;
	err = reserve(&reserved, whole->bytes);
	if (unlikely(err)) {
		lose_event(err);
		return true;
	}
	record = &reserved.entry->record;
	record->upid = upid;
	record->time_ns = time_ns;
	record->cpu = (u16)raw_smp_processor_id();
	record->flags = 0;
	if (unlikely(!etrace_whole_put(whole, reserved.entry->payload, event, values, data))) {
		ring_buffer_discard_commit(reserved.buffer, reserved.event);
		return false;
	}
	commit(&reserved);
	etrace_count(ETRACE_COUNT_EVENTS);
	return true;
}

static __always_inline void emit(const struct etrace_task *entry, u64 time_ns,
				 struct etrace_whole whole, enum etrace_event event,
				 const s64 *values, const struct etrace_text *data)
{
	preempt_disable_notrace();
	if (likely(etrace_task_live(entry)) &&
	    unlikely(!emit_whole(entry->upid, time_ns, &whole, event, values, data)))
		emit_in_pieces(entry, time_ns, event, values, data);
	preempt_enable_notrace();
}

void etrace_emit(const struct etrace_task *entry, u64 time_ns, enum etrace_event event,
		 const s64 *values, const struct etrace_text *data)
{
	struct etrace_whole whole;

	etrace_whole_of(&whole, event);
	emit(entry, time_ns, whole, event, values, data);
}

/* The two most frequent events, with code of their own: a third of the instructions. */

void etrace_emit_open_event(const struct etrace_task *entry, u64 time_ns, const s64 *values,
			    const struct etrace_text *data)
{
	emit(entry, time_ns, etrace_whole_from(&etrace_event_defs[ETRACE_EV_OPEN]), ETRACE_EV_OPEN,
	     values, data);
}

void etrace_emit_close_event(const struct etrace_task *entry, u64 time_ns, int fd)
{
	s64 value = fd;

	emit(entry, time_ns, etrace_whole_from(&etrace_event_defs[ETRACE_EV_CLOSE]),
	     ETRACE_EV_CLOSE, &value, NULL);
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
	rcu_assign_pointer(current_target, &target);
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
	RCU_INIT_POINTER(current_target, NULL);
	synchronize_rcu();
	check_buffer(instance);
}
