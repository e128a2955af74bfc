// SPDX-License-Identifier: GPL-2.0-only
/* Events -> records, in the general case; emit.h has the fast path. Context: any. */
#include "record/emit.h"
#include "record/scratch.h"

void etrace_emit_in_pieces(const struct etrace_origin *origin, u64 time_ns, enum etrace_event event,
			   const s64 *values, const struct etrace_text *data)
{
	struct etrace_stream *stream = etrace_emit_stream_get();

	etrace_stream_begin(stream, origin, time_ns);
	etrace_stream_event(stream, event, values, data);
	etrace_stream_end(stream);
	etrace_emit_stream_put();
}

void etrace_lose_event(int err)
{
	if (err != -ENOSPC)
		return;
	etrace_count(ETRACE_COUNT_LOST_EVENTS);
	etrace_lose_record();
}

void etrace_emit(const struct etrace_origin *origin, u64 time_ns, enum etrace_event event,
		 const s64 *values, const struct etrace_text *data)
{
	struct etrace_whole whole;

	etrace_whole_of(&whole, event);
	etrace_emit_inline(origin, time_ns, whole, event, values, data);
}
