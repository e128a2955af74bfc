/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One event as one record in the ring buffer of the session, inline: for etrace_emit(), and for
 * the two most frequent events, of which the compiler then knows all but the strings. The ring
 * buffer is written directly (emit.c). Context: any; nothing here sleeps, faults or locks.
 */
#ifndef ETRACE_EMIT_H
#define ETRACE_EMIT_H

#include <linux/ring_buffer.h>

#include "etrace.h"
#include "record.h"

/*
 * Where records go. Set while a session runs; read with preemption off, which RCU waits for, and
 * after a look at the session: late work of an earlier one does not write here.
 */
struct etrace_target {
	struct trace_buffer *buffer;
	u16 type; /* of our trace event */
};

extern struct etrace_target __rcu *etrace_current_target;

/* A record between reserve and commit: preemption is off. */
struct etrace_reserved {
	struct trace_buffer *buffer;
	struct ring_buffer_event *event;
	struct etrace_entry *entry;
};

/* As ring_buffer_event_data(), without a call for records of less than 112 bytes. */
static __always_inline void *etrace_event_data(struct ring_buffer_event *event)
{
	if (likely(event->type_len - 1u < RINGBUF_TYPE_DATA_TYPE_LEN_MAX))
		return event->array;
	return ring_buffer_event_data(event);
}

/* -ENOSPC: a loss. -ESHUTDOWN: the session is over, nobody expects the record. */
static __always_inline int etrace_reserve(struct etrace_reserved *reserved, size_t payload_bytes)
{
	const struct etrace_target *to = rcu_dereference_sched(etrace_current_target);
	struct etrace_entry *entry;

	if (unlikely(!to))
		return -ESHUTDOWN;
	reserved->buffer = to->buffer;
	reserved->event = ring_buffer_lock_reserve(to->buffer, sizeof(*entry) + payload_bytes);
	if (unlikely(!reserved->event))
		return -ENOSPC;
	entry = etrace_event_data(reserved->event);
	entry->ent = (struct trace_entry){ .type = to->type, .pid = current->pid };
	entry->record.payload = (u32)(sizeof(*entry) | payload_bytes << 16);
	reserved->entry = entry;
	return 0;
}

static __always_inline void etrace_commit(const struct etrace_reserved *reserved)
{
	etrace_ring_buffer_commit(reserved->buffer, reserved->event);
	etrace_count(ETRACE_COUNT_RECORDS);
}

/* Count an event that was not written; nothing when its session is over. */
void etrace_lose_event(int err);

/* An event that one record may not hold. */
void etrace_emit_in_pieces(const struct etrace_task *entry, u64 time_ns, enum etrace_event event,
			   const s64 *values, const struct etrace_text *data);

/* False: nothing was written, the text may be too long for one record. Preemption is off. */
static __always_inline bool etrace_emit_whole(s64 upid, u64 time_ns, struct etrace_whole *whole,
					      enum etrace_event event, const s64 *values,
					      const struct etrace_text *data)
{
	struct etrace_reserved reserved;
	struct etrace_record *record;
	int err;

	if (unlikely(!etrace_whole_measure(whole, data)))
		return false;
	err = etrace_reserve(&reserved, whole->bytes);
	if (unlikely(err)) {
		etrace_lose_event(err);
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
	etrace_commit(&reserved);
	etrace_count(ETRACE_COUNT_EVENTS);
	return true;
}

/* etrace_emit(), where `whole` is etrace_whole_from() of the event. */
static __always_inline void etrace_emit_inline(const struct etrace_task *entry, u64 time_ns,
					       struct etrace_whole whole, enum etrace_event event,
					       const s64 *values, const struct etrace_text *data)
{
	preempt_disable_notrace();
	if (likely(etrace_task_live(entry)) &&
	    unlikely(!etrace_emit_whole(entry->upid, time_ns, &whole, event, values, data)))
		etrace_emit_in_pieces(entry, time_ns, event, values, data);
	preempt_enable_notrace();
}

#endif /* ETRACE_EMIT_H */
