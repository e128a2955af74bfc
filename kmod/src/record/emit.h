/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One event of whole strings as one record, or as many as its text needs. Inline for etrace_emit(),
 * and for the two most frequent events, of which the compiler then knows all but the strings.
 * Context: any, preemption on or off; nothing here sleeps, faults or locks.
 */
#ifndef ETRACE_EMIT_H
#define ETRACE_EMIT_H

#include "record/stream.h"
#include "record/target.h"

/*
 * Nothing when the session of `origin` is over. The strings must stay as they are during the call
 * (no user memory).
 */
void etrace_emit(const struct etrace_origin *origin, u64 time_ns, enum etrace_event event,
		 const s64 *values, const struct etrace_text *data);

/* Count an event that was not written; nothing when its session is over. */
void etrace_lose_event(int err);

/* An event that one record may not hold. */
void etrace_emit_in_pieces(const struct etrace_origin *origin, u64 time_ns, enum etrace_event event,
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
static __always_inline void etrace_emit_inline(const struct etrace_origin *origin, u64 time_ns,
					       struct etrace_whole whole, enum etrace_event event,
					       const s64 *values, const struct etrace_text *data)
{
	preempt_disable_notrace();
	if (likely(etrace_origin_live(origin)) &&
	    unlikely(!etrace_emit_whole(origin->upid, time_ns, &whole, event, values, data)))
		etrace_emit_in_pieces(origin, time_ns, event, values, data);
	preempt_enable_notrace();
}

#endif /* ETRACE_EMIT_H */
