// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events -> records: whole ones (emit.h has the fast path), and streams, which are put together
 * piece by piece; and the memory for both. Context: whatever the caller is in, atomic included.
 */
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "record/emit.h"

/* ---- memory ---- */

/*
 * Paths and streams are too long for the stack, and probes do not allocate. Task context.
 *
 * Not from alloc_percpu(): that may be vmalloc memory, where each strncpy_from_user() of a hardened
 * kernel takes a global lock to look for the area that it writes to.
 */
struct cpu_memory {
	struct etrace_scratch scratch; /* of a probe */
	struct etrace_stream stream; /* of etrace_emit(), whose strings may be in scratch */
};

static DEFINE_PER_CPU(struct cpu_memory *, cpu_memory);

int etrace_scratch_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct cpu_memory *memory =
			kmalloc_node(sizeof(*memory), GFP_KERNEL, cpu_to_node(cpu));

		if (!memory) {
			etrace_scratch_deinit();
			return -ENOMEM;
		}
		per_cpu(cpu_memory, cpu) = memory;
	}
	return 0;
}

void etrace_scratch_deinit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		kfree(per_cpu(cpu_memory, cpu));
		per_cpu(cpu_memory, cpu) = NULL;
	}
}

struct etrace_scratch *etrace_scratch_get(void)
{
	preempt_disable();
	return &__this_cpu_read(cpu_memory)->scratch;
}

void etrace_scratch_put(struct etrace_scratch *scratch)
{
	preempt_enable();
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
	record->upid = stream->origin.upid;
	record->time_ns = stream->time_ns;
	record->cpu = stream->cpu;
	record->flags = flags;
	etrace_copy_words(reserved.entry->payload, split->buf, split->len);
	etrace_commit(&reserved);
	return 0;
}

/* After the first loss the rest of the event is useless to a reader: it counts as lost too. */
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
	if (etrace_origin_live(&stream->origin) &&
	    (stream->lost || write_record(stream, flags) == -ENOSPC)) {
		stream->lost = true;
		etrace_lose_record();
	}
	preempt_enable_notrace();
}

void etrace_stream_begin(struct etrace_stream *stream, const struct etrace_origin *origin,
			 u64 time_ns)
{
	stream->origin = *origin;
	stream->time_ns = time_ns;
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
	if (etrace_origin_live(&stream->origin))
		etrace_count_n(stream->lost ? ETRACE_COUNT_LOST_EVENTS : ETRACE_COUNT_EVENTS,
			       stream->n_events);
}

/* ---- whole events ---- */

void etrace_emit_in_pieces(const struct etrace_origin *origin, u64 time_ns, enum etrace_event event,
			   const s64 *values, const struct etrace_text *data)
{
	struct etrace_stream *stream;

	preempt_disable();
	stream = &__this_cpu_read(cpu_memory)->stream;
	etrace_stream_begin(stream, origin, time_ns);
	etrace_stream_event(stream, event, values, data);
	etrace_stream_end(stream);
	preempt_enable();
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
