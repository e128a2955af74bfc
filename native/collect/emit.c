// SPDX-License-Identifier: Apache-2.0
/* Whole events -> lines in the output, counted on the way. */
#include <linux/sched.h>
#include <string.h>

#include "collect.h"
#include "merge.h"
#include "page.h"
#include "writer.h"

#define SECOND_NS 1000000000u
#define PREFIXES 256

static u64 last_time_ns; /* of the events that went out: the latest */

/* A clone puts its SysClone right before its SchedFork; a fork has none. */
static void count_piece(const struct etrace_piece *piece, const s64 *value, bool *thread)
{
	switch (piece->what) {
	case ETRACE_EV_SYS_CLONE:
		*thread = *value & CLONE_THREAD;
		break;
	case ETRACE_EV_SCHED_FORK:
		counters.threads += *thread;
		counters.processes += !*thread;
		*thread = false;
		break;
	case ETRACE_EV_NEW_PROC:
		counters.executions++;
		break;
	case ETRACE_EV_OPEN:
		counters.opens++;
		break;
	case ETRACE_EV_EXIT:
		counters.exits++;
		break;
	}
}

/* The number of events in a record whose payload is well-formed: its text was made. */
static size_t count_record(const struct held_record *record)
{
	const char *at = record->payload;
	const char *end = at + record->payload_bytes;
	bool thread = false;
	size_t n = 0;

	while (at < end) {
		struct etrace_piece piece;
		s64 value = 0;

		memcpy(&piece, at, sizeof(piece));
		if (piece.kind == ETRACE_PIECE_EVENT) {
			if (piece.n_values)
				memcpy(&value, at + sizeof(piece), sizeof(value));
			count_piece(&piece, &value, &thread);
			n++;
		}
		at += piece.size;
	}
	return n;
}

/* Events of a task follow each other within a second on one CPU: most prefixes differ little. */
static const struct etrace_prefix *prefix_of(const struct held_record *record)
{
	static struct {
		s64 upid;
		u64 sec;
		u32 cpu;
		struct etrace_prefix prefix;
	} cache[PREFIXES], *found;
	u64 sec = record->time_ns / SECOND_NS;

	found = &cache[(u64)record->upid % PREFIXES];
	if (found->prefix.len && found->upid == record->upid && found->sec == sec &&
	    found->cpu == record->cpu) {
		etrace_prefix_set_nsec(&found->prefix, (u32)(record->time_ns - sec * SECOND_NS));
		return &found->prefix;
	}
	found->upid = record->upid;
	found->sec = sec;
	found->cpu = record->cpu;
	etrace_prefix_init(&found->prefix, record->upid, record->cpu, record->time_ns);
	return &found->prefix;
}

static bool put_records(const struct held_record *records, size_t n)
{
	const struct etrace_prefix *prefix = prefix_of(records);
	size_t i;

	for (i = 0; i < n; i++)
		if (!etrace_record_text(writer_text(), prefix, records[i].payload,
					records[i].payload_bytes))
			return false;
	return true;
}

/* Put the events, twice when the buffer must be emptied first. */
static void put_event(const struct held_record *records, size_t n)
{
	size_t n_events = 0, i;

	writer_begin();
	if (!put_records(records, n)) {
		writer_cancel();
		if (!counters.malformed++)
			say("cpu %u: an event of task %lld is malformed and left out; please "
			    "report", records->cpu, (long long)records->upid);
		return;
	}
	for (i = 0; i < n; i++)
		n_events += count_record(&records[i]);
	while (!writer_end(n_events, n)) {
		writer_begin();
		put_records(records, n);
	}
}

void emit_event(const struct held_record *records, size_t n)
{
	size_t i;

	if (records->time_ns < last_time_ns)
		counters.unordered++;
	else
		last_time_ns = records->time_ns;
	put_event(records, n);
	for (i = 0; i < n; i++)
		page_put(records[i].page);
}
