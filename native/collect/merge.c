// SPDX-License-Identifier: Apache-2.0
/*
 * Records of all CPUs -> whole events in the order of their time.
 *
 * Within a CPU records are nearly in order: an event takes its time before it is written, and the
 * task may sleep in between. So each CPU has a few sorted runs; a record goes to the first whose
 * last one is not later (patience sorting), nearly always the same. A heap merges the runs.
 *
 * An event of several records is gathered by (upid, time). While one is incomplete, later ones
 * wait for it, but not longer than the horizon's patience: afterwards it stays aside until it is
 * complete or a later event of the same task shows that the rest was lost.
 */
#include "merge.h"

#include <stdlib.h>
#include <string.h>

#include "collect.h"
#include "pool.h"

#define RUNS_PER_CPU 16
#define FIRST_RECORDS 64

struct run {
	struct held_record *records;
	size_t head;
	size_t tail;
	size_t size;
	u64 last_ns; /* of the record at the tail */
};

/* An event of which records are missing. */
struct gathering {
	s64 upid;
	u64 time_ns;
	struct held_record *records; /* by their numbers */
	size_t n;
	size_t size;
};

static struct {
	struct run *runs; /* RUNS_PER_CPU of each CPU */
	struct run **heap; /* those that are not empty, the one with the earliest head first */
	size_t n_heap;
	struct gathering *gatherings; /* seldom more than one */
	size_t n_gatherings;
	size_t max_gatherings;
	s64 given_up_upid; /* the last event given up, so that its stragglers are not counted again */
	u64 given_up_ns;
} merge;

void merge_init(size_t n_cpus)
{
	size_t n_runs = n_cpus * RUNS_PER_CPU;

	merge.runs = must_realloc(NULL, n_runs * sizeof(*merge.runs));
	memset(merge.runs, 0, n_runs * sizeof(*merge.runs));
	merge.heap = must_realloc(NULL, n_runs * sizeof(struct run *));
}

/* ---- runs and their heap ---- */

static u64 head_time(const struct run *run)
{
	return run->records[run->head].time_ns;
}

static void sift_up(size_t idx)
{
	struct run *run = merge.heap[idx];

	while (idx && head_time(merge.heap[(idx - 1) / 2]) > head_time(run)) {
		merge.heap[idx] = merge.heap[(idx - 1) / 2];
		idx = (idx - 1) / 2;
	}
	merge.heap[idx] = run;
}

static void sift_down(void)
{
	struct run *run = merge.heap[0];
	u64 time_ns = head_time(run);
	size_t idx = 0, child;

	for (; (child = 2 * idx + 1) < merge.n_heap; idx = child) {
		if (child + 1 < merge.n_heap &&
		    head_time(merge.heap[child + 1]) < head_time(merge.heap[child]))
			child++;
		if (head_time(merge.heap[child]) >= time_ns)
			break;
		merge.heap[idx] = merge.heap[child];
	}
	merge.heap[idx] = run;
}

/* Room for one record at the tail: move what is left to the front, or double. */
static void make_room(struct run *run)
{
	size_t n = run->tail - run->head;

	if (run->head > run->size / 2) {
		memmove(run->records, run->records + run->head, n * sizeof(*run->records));
		run->head = 0;
		run->tail = n;
		return;
	}
	run->size = run->size ? run->size * 2 : FIRST_RECORDS;
	run->records = must_realloc(run->records, run->size * sizeof(*run->records));
}

/* The first run that `time_ns` fits behind; the last one when there is none, out of order then. */
static struct run *run_for(size_t idx, u64 time_ns)
{
	struct run *run = merge.runs + idx * RUNS_PER_CPU;
	struct run *last = run + RUNS_PER_CPU - 1;

	while (run < last && run->head < run->tail && run->last_ns > time_ns)
		run++;
	return run;
}

void merge_add(size_t idx, const struct held_record *record)
{
	struct run *run = run_for(idx, record->time_ns);
	bool was_empty = run->head == run->tail;

	if (was_empty)
		run->head = run->tail = 0;
	if (run->tail == run->size)
		make_room(run);
	run->records[run->tail++] = *record;
	run->last_ns = record->time_ns;
	if (was_empty) {
		merge.heap[merge.n_heap] = run;
		sift_up(merge.n_heap++);
	}
}

/* After the head of the first run was taken. */
static void drop_head(void)
{
	struct run *run = merge.heap[0];

	if (++run->head == run->tail)
		merge.heap[0] = merge.heap[--merge.n_heap];
	if (merge.n_heap)
		sift_down();
}

/* ---- events of several records ---- */

static u32 number_of(const struct held_record *record)
{
	return (u32)record->flags >> ETRACE_RECORD_NUMBER_SHIFT;
}

/* Numbers wrap: the nearer way round tells which record comes first. */
static bool comes_before(const struct held_record *one, const struct held_record *other)
{
	u32 ahead = (number_of(other) - number_of(one)) & ETRACE_RECORD_NUMBER_MASK;

	return ahead && ahead <= ETRACE_RECORD_NUMBER_MASK / 2;
}

static bool is_complete(const struct gathering *event)
{
	size_t i;

	if (event->records[0].flags & ETRACE_RECORD_CONTINUES ||
	    event->records[event->n - 1].flags & ETRACE_RECORD_MORE)
		return false;
	for (i = 1; i < event->n; i++)
		if (((number_of(&event->records[i]) - number_of(&event->records[i - 1])) &
		     ETRACE_RECORD_NUMBER_MASK) != 1)
			return false;
	return true;
}

static void forget(struct gathering *event)
{
	free(event->records);
	*event = merge.gatherings[--merge.n_gatherings];
}

static void give_up(struct gathering *event)
{
	size_t i;

	merge.given_up_upid = event->upid;
	merge.given_up_ns = event->time_ns;
	for (i = 0; i < event->n; i++)
		page_put(event->records[i].page);
	forget(event);
}

u64 merge_give_up(void)
{
	u64 n = merge.n_gatherings;

	while (merge.n_gatherings)
		give_up(merge.gatherings);
	return n;
}

static struct gathering *gathering_of(const struct held_record *record)
{
	struct gathering *event;
	size_t i;

	for (i = 0; i < merge.n_gatherings; i++) {
		event = &merge.gatherings[i];
		if (event->upid == record->upid && event->time_ns == record->time_ns)
			return event;
	}
	if (merge.n_gatherings == merge.max_gatherings) {
		merge.max_gatherings += FIRST_RECORDS;
		merge.gatherings = must_realloc(merge.gatherings, merge.max_gatherings *
						sizeof(*merge.gatherings));
	}
	event = &merge.gatherings[merge.n_gatherings++];
	*event = (struct gathering){ .upid = record->upid, .time_ns = record->time_ns };
	return event;
}

static void insert(struct gathering *event, const struct held_record *record)
{
	size_t i = event->n++;

	if (i == event->size) {
		event->size = event->size ? event->size * 2 : FIRST_RECORDS;
		event->records =
			must_realloc(event->records, event->size * sizeof(*event->records));
	}
	for (; i && comes_before(record, &event->records[i - 1]); i--)
		event->records[i] = event->records[i - 1];
	event->records[i] = *record;
}

static void gather(const struct held_record *record)
{
	struct gathering *event;

	if (record->upid == merge.given_up_upid && record->time_ns == merge.given_up_ns) {
		page_put(record->page);
		return;
	}
	event = gathering_of(record);
	insert(event, record);
	if (is_complete(event)) {
		emit_event(event->records, event->n);
		forget(event);
	}
}

/*
 * A later event of the same task: what was not written before it never will be. Lines of the
 * environment have upid 0, whatever the task.
 */
static void give_up_before(s64 upid, u64 time_ns)
{
	size_t i = upid ? merge.n_gatherings : 0;

	while (i--) {
		struct gathering *event = &merge.gatherings[i];

		if (event->upid == upid && event->time_ns < time_ns) {
			counters.incomplete++;
			give_up(event);
		}
	}
}

static bool must_wait(u64 time_ns, u64 patience_ns)
{
	size_t i;

	for (i = 0; i < merge.n_gatherings; i++)
		if (merge.gatherings[i].time_ns < time_ns &&
		    merge.gatherings[i].time_ns >= patience_ns)
			return true;
	return false;
}

void merge_emit(struct horizon horizon)
{
	while (merge.n_heap) {
		struct run *run = merge.heap[0];
		struct held_record record = run->records[run->head];

		if (record.time_ns >= horizon.before_ns)
			return;
		if (merge.n_gatherings) {
			if (must_wait(record.time_ns, horizon.patience_ns))
				return;
			give_up_before(record.upid, record.time_ns);
		}
		drop_head();
		if (record.flags & (ETRACE_RECORD_MORE | ETRACE_RECORD_CONTINUES))
			gather(&record);
		else
			emit_event(&record, 1);
	}
}
