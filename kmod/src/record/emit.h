/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events -> records of the ring buffer: whole ones, or put together piece by piece. Context: any,
 * preemption on or off, where nothing else is said; nothing here sleeps, faults or locks.
 */
#ifndef ETRACE_EMIT_H
#define ETRACE_EMIT_H

#include <linux/ktime.h>
#include <linux/limits.h>

#include "etrace_split.h"
#include "record/target.h"
#include "state.h"

/* The process that an event belongs to, and its session. */
struct etrace_origin {
	s64 upid;
	u32 session;
};

/*
 * False when the session that traced the task is over. STOP waits a while for task_work, but not
 * forever (others' work may come before it): work asks right before it emits.
 */
static inline bool etrace_origin_live(const struct etrace_origin *origin)
{
	return origin->session == READ_ONCE(etrace_session);
}

/* The time of an event. */
static inline u64 etrace_now(void)
{
	return ktime_get_ns(); /* CLOCK_MONOTONIC; the fast variant may step back */
}

/*
 * An event put together piece by piece, or several lines with one time stamp that belong together
 * (Close ... Close, Comm, New_proc; RenameFrom, RenameTo). Pieces gather in `buf` and go out as
 * records. May sleep between calls if the caller may.
 */
struct etrace_stream {
	struct etrace_origin origin; /* a caller may set upid 0 before the first event (Env) */
	u64 time_ns;
	u32 n_events;
	u16 cpu; /* of the first piece: all lines of an event show one */
	u16 n_records; /* so far: the number of the next one */
	bool continues;
	bool lost;
	struct etrace_split split;
};

void etrace_stream_begin(struct etrace_stream *stream, const struct etrace_origin *origin,
			 u64 time_ns);
/* The event's line and its strings, cut as needed. */
void etrace_stream_event(struct etrace_stream *stream, enum etrace_event event, const s64 *values,
			 const struct etrace_text *data);
/*
 * Bytes of item `index` of a list (A) or of a variable (Env: index counts parts, so the caller
 * passes the number of the first part). Long items may come in several calls: all but the last of a
 * multiple of ETRACE_PART_BYTES. Returns the number of parts written.
 */
u32 etrace_stream_item(struct etrace_stream *stream, enum etrace_data tag, u32 index,
		       const char *text, size_t len);
void etrace_stream_end_of_args(struct etrace_stream *stream);
/* Write the rest. */
void etrace_stream_end(struct etrace_stream *stream);

/* ---- memory for the probe that runs on a CPU ---- */

/* When the module is loaded and unloaded. */
int etrace_scratch_init(void);
void etrace_scratch_deinit(void);

/*
 * Per-CPU scratch: disables preemption until put. One user at a time on a CPU (task context only).
 * `path` and `other` take a path of PATH_MAX and its directory; `stream` is for streams that do
 * not sleep.
 */
#define ETRACE_PATH_BYTES (PATH_MAX + 16) /* with the kernel's " (deleted)" */
struct etrace_scratch {
	char path[ETRACE_PATH_BYTES];
	char other[2 * PATH_MAX];
	char third[ETRACE_PATH_BYTES];
	struct etrace_stream stream;
};

struct etrace_scratch *etrace_scratch_get(void);
void etrace_scratch_put(struct etrace_scratch *scratch);

/*
 * ---- whole events: one record, or as many as the text needs ----
 *
 * Inline for etrace_emit(), and for the two most frequent events: there the compiler knows all but
 * the strings.
 */

/*
 * Nothing when the session of `origin` is over. The strings must stay unchanged during the call
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
