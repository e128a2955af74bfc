/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where records go: the ring buffer of the session's ftrace instance, which is written directly.
 * What the tracing core does around it (filters, triggers, stack traces) costs 200 instructions a
 * record and has no use here. Context: any, where nothing else is said; reserving and committing
 * neither sleeps, faults nor locks.
 */
#ifndef ETRACE_TARGET_H
#define ETRACE_TARGET_H

#include <linux/rcupdate.h>
#include <linux/ring_buffer.h>
#include <linux/sched.h>
#include <linux/trace_events.h>

#include "compat.h"
#include "etrace_record.h"
#include "state.h"

struct etrace_entry {
	struct trace_entry ent;
	struct etrace_record record;
	char payload[];
};

/* Of `record.payload`: where the payload begins, counted from the entry, and how long it is. */
#define ETRACE_PAYLOAD_AT(location) ((location) & 0xffff)
#define ETRACE_PAYLOAD_BYTES(location) ((location) >> 16)

/* How the trace event prints itself; before the first record. */
void etrace_text_init(void);

/*
 * Write into this instance from now on, or nowhere. Process context. -ENODEV: the instance lacks
 * our event; -EBUSY: somebody filters it; -ENOSPC: tracing is off there, or its buffer is full and
 * nobody reads.
 */
int etrace_target_open(const char *instance);
void etrace_target_close(const char *instance);

/*
 * Set while a session runs; read with preemption off, which RCU waits for, and
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

/* A record was not written. */
void etrace_lose_record(void);

#endif /* ETRACE_TARGET_H */
