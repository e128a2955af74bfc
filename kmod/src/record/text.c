// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a reader of trace_pipe sees: the lines of a record, nothing before them. Runs when the pipe
 * is read, in the reader's context, under locks of ftrace.
 */
#include <linux/seq_buf.h>
#include <linux/trace_seq.h>

#include "record/target.h"

#define CREATE_TRACE_POINTS
#include "record/trace.h"

/* The payload of an entry of `size` bytes, checked like foreign data. */
static const char *payload_of(const struct etrace_entry *entry, size_t size, size_t *len)
{
	size_t at;

	if (size < sizeof(*entry))
		return NULL;
	at = ETRACE_PAYLOAD_AT(entry->record.payload);
	*len = ETRACE_PAYLOAD_BYTES(entry->record.payload);
	if (at < sizeof(*entry) || at + *len > size)
		return NULL;
	return (const char *)entry + at;
}

static bool put_entry(struct etrace_out *out, const struct etrace_entry *entry, size_t size)
{
	struct etrace_prefix prefix;
	const char *payload;
	size_t len;

	payload = payload_of(entry, size, &len);
	if (!payload)
		return false;
	etrace_prefix_init(&prefix, entry->record.upid, entry->record.cpu, entry->record.time_ns);
	return etrace_record_text(out, &prefix, payload, len);
}

/* Print straight into the reader's page: what does not fit is printed again with an empty one. */
static enum print_line_t print_record(struct trace_iterator *iter, int flags,
				      struct trace_event *event)
{
	struct trace_seq *seq = &iter->seq;
	struct etrace_out out;
	size_t room;
	char *buf;

	if (!seq->seq.size) /* of `trace`: ftrace's own functions do so at first use */
		trace_seq_init(seq);
	room = seq_buf_get_buf(&seq->seq, &buf);
	etrace_out_init(&out, buf, room);
	if (!put_entry(&out, (const struct etrace_entry *)iter->ent, (size_t)iter->ent_size))
		pr_warn_once("etrace: a record of %d bytes is damaged: please report\n",
			     iter->ent_size);
	if (out.len > room)
		seq_buf_set_overflow(&seq->seq);
	else
		seq_buf_commit(&seq->seq, (int)out.len);
	return trace_handle_return(seq);
}

void etrace_text_init(void)
{
	/* the macro's own function would print the event's name before each record */
	trace_event_type_funcs_etrace_record.trace = print_record;

	BUILD_BUG_ON(offsetof(struct trace_event_raw_etrace_record, upid) !=
		     offsetof(struct etrace_entry, record.upid));
	BUILD_BUG_ON(offsetof(struct trace_event_raw_etrace_record, __data_loc_payload) !=
		     offsetof(struct etrace_entry, record.payload));
	BUILD_BUG_ON(offsetof(struct trace_event_raw_etrace_record, __data) !=
		     sizeof(struct etrace_entry));
}
