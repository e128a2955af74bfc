/* SPDX-License-Identifier: GPL-2.0-only */
/* Events that are put together piece by piece, as records of the ring buffer. */
#ifndef ETRACE_STREAM_H
#define ETRACE_STREAM_H

#include <linux/ktime.h>

#include "etrace_split.h"
#include "state.h"

/* Of whom an event is. */
struct etrace_origin {
	s64 upid;
	u32 session;
};

/*
 * False when the session that traced the task is over. STOP waits a while for task_work, but not
 * for ever (others' work may come before it): work asks right before it emits.
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

#endif /* ETRACE_STREAM_H */
