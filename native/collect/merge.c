// SPDX-License-Identifier: Apache-2.0
/*
 * Records of all CPUs -> whole events in the order of their time.
 *
 * Within a CPU records are nearly in order: an event takes its time before it is written, and the
 * task may sleep in between. So each CPU has a few sorted runs; a record goes to the first whose
 * last one is not later (patience sorting), nearly always the same. A heap merges the runs.
 *
 * An event of several records is gathered by upid, time and CPU: lines of the environment have upid
 * 0 whatever the task, and two tasks may have got the same time, but not on one CPU. While one is
 * incomplete, later ones wait for it, but not longer than the horizon's patience: afterwards it
 * stays aside until it is complete or a later event of the same task, or of one with its number,
 * shows that the rest was lost. Lines of the environment name no task: they are given up then. What
 * an event costs does not depend on how many are incomplete: lost records must not make the
 * collector slow, which loses more.
 */
#include "merge.h"

#include <stdlib.h>
#include <string.h>

#include "collect.h"
#include "page.h"

#define RUNS_PER_CPU 16
#define FIRST_RECORDS 64
#define KEPT_RECORDS 256 /* of a run that is nearly empty after a burst */
#define FIRST_BUCKETS 64

struct run {
	struct held_record *records;
	size_t head;
	size_t tail;
	size_t size;
	u64 last_ns; /* of the record at the tail */
};

/* An event of which records are missing. */
struct gathering {
	struct gathering *next; /* in the bucket */
	struct gathering *earlier; /* of those waited for, by time */
	struct gathering *later;
	bool aside; /* and no more waited for */
	s64 upid;
	u64 time_ns;
	u16 cpu; /* that all of its lines show */
	struct held_record *records; /* by their numbers */
	size_t n;
	size_t size;
};

static struct {
	struct run *runs; /* RUNS_PER_CPU of each CPU */
	size_t n_runs;
	struct run **heap; /* those that are not empty, the one with the earliest head first */
	size_t n_heap;
	struct gathering **buckets; /* incomplete events, seldom more than one */
	size_t n_buckets; /* a power of two */
	size_t n_gatherings;
	struct gathering *earliest; /* that is waited for */
	struct gathering *latest;
	u64 bytes; /* of the arrays of records */
	s64 given_up_upid; /* the last event given up, so that its stragglers are not counted again */
	u64 given_up_ns;
	u16 given_up_cpu;
} merge;

void merge_init(size_t n_cpus)
{
	merge.n_runs = n_cpus * RUNS_PER_CPU;
	merge.runs = must_realloc(NULL, merge.n_runs * sizeof(*merge.runs));
	memset(merge.runs, 0, merge.n_runs * sizeof(*merge.runs));
	merge.heap = must_realloc(NULL, merge.n_runs * sizeof(struct run *));
}

u64 merge_bytes(void)
{
	return merge.bytes;
}

/* Change the size of an array of records. */
static void resize(struct held_record **records, size_t *size, size_t to)
{
	*records = must_realloc(*records, to * sizeof(**records));
	merge.bytes += to * sizeof(**records);
	merge.bytes -= *size * sizeof(**records);
	*size = to;
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

static void move_to_front(struct run *run)
{
	size_t n = run->tail - run->head;

	memmove(run->records, run->records + run->head, n * sizeof(*run->records));
	run->head = 0;
	run->tail = n;
}

/* Room for one record at the tail: move the rest to the front, or double. */
static void make_room(struct run *run)
{
	if (run->head > run->size / 2)
		move_to_front(run);
	else
		resize(&run->records, &run->size, run->size ? run->size * 2 : FIRST_RECORDS);
}

/* The memory of a burst goes back. */
static void shrink_runs(void)
{
	struct run *run;

	for (run = merge.runs; run < merge.runs + merge.n_runs; run++) {
		size_t n = run->tail - run->head;

		if (run->size <= KEPT_RECORDS || n > run->size / 8)
			continue;
		move_to_front(run);
		resize(&run->records, &run->size, n * 2 > KEPT_RECORDS ? n * 2 : KEPT_RECORDS);
	}
}

/* The first run that `time_ns` can follow; else the last one, which is then out of order. */
static struct run *run_for(size_t idx, u64 time_ns)
{
	struct run *run = merge.runs + idx * RUNS_PER_CPU;
	struct run *last = run + RUNS_PER_CPU - 1;

	while (run < last && run->head < run->tail && run->last_ns > time_ns)
		run++;
	return run;
}

u64 merge_cpu_bytes(size_t idx)
{
	struct run *run = merge.runs + idx * RUNS_PER_CPU;
	struct run *end = run + RUNS_PER_CPU;
	u64 n = 0;

	for (; run < end; run++)
		n += run->tail - run->head;
	return n * sizeof(struct held_record);
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

/* Numbers wrap: the nearer way round shows which record comes first. */
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

/* The number that the kernel gave the task: a later task gets it only when this one has died. */
static u64 number_of_task(s64 upid)
{
	return (u64)upid & (((u64)1 << ETRACE_UPID_PID_BITS) - 1);
}

/*
 * Events of a task lie together with those of others that had its number: a later one looks for
 * them. Those of no task are distinguished by time.
 */
static struct gathering **bucket_of(s64 upid, u64 time_ns)
{
	u64 hash = (upid ? number_of_task(upid) : time_ns) * 0x9e3779b97f4a7c15u;

	return &merge.buckets[(hash >> 32) & (merge.n_buckets - 1)];
}

static void grow_buckets(void)
{
	struct gathering **old = merge.buckets, *event, *next, **bucket;
	size_t n_old = merge.n_buckets, i;

	merge.n_buckets = n_old ? n_old * 2 : FIRST_BUCKETS;
	merge.buckets = must_realloc(NULL, merge.n_buckets * sizeof(*merge.buckets));
	memset(merge.buckets, 0, merge.n_buckets * sizeof(*merge.buckets));
	for (i = 0; i < n_old; i++) {
		for (event = old[i]; event; event = next) {
			next = event->next;
			bucket = bucket_of(event->upid, event->time_ns);
			event->next = *bucket;
			*bucket = event;
		}
	}
	free(old);
}

/* Times mostly grow: its place is at the end or near it. */
static void wait_for(struct gathering *event)
{
	struct gathering *before = merge.latest;

	while (before && before->time_ns > event->time_ns)
		before = before->earlier;
	event->earlier = before;
	event->later = before ? before->later : merge.earliest;
	*(before ? &before->later : &merge.earliest) = event;
	*(event->later ? &event->later->earlier : &merge.latest) = event;
}

static void set_aside(struct gathering *event)
{
	*(event->earlier ? &event->earlier->later : &merge.earliest) = event->later;
	*(event->later ? &event->later->earlier : &merge.latest) = event->earlier;
	event->aside = true;
}

static void forget(struct gathering *event)
{
	struct gathering **link = bucket_of(event->upid, event->time_ns);

	while (*link != event)
		link = &(*link)->next;
	*link = event->next;
	if (!event->aside)
		set_aside(event);
	merge.n_gatherings--;
	merge.bytes -= sizeof(*event) + event->size * sizeof(*event->records);
	free(event->records);
	free(event);
}

static void give_up(struct gathering *event)
{
	size_t i;

	merge.given_up_upid = event->upid;
	merge.given_up_ns = event->time_ns;
	merge.given_up_cpu = event->cpu;
	for (i = 0; i < event->n; i++)
		page_put(event->records[i].page);
	forget(event);
}

u64 merge_give_up(void)
{
	u64 n = merge.n_gatherings;
	size_t i;

	for (i = 0; i < merge.n_buckets; i++)
		while (merge.buckets[i])
			give_up(merge.buckets[i]);
	return n;
}

static struct gathering *begin_gathering(const struct held_record *record)
{
	struct gathering *event = must_realloc(NULL, sizeof(*event)), **bucket;

	if (merge.n_gatherings++ == merge.n_buckets)
		grow_buckets();
	bucket = bucket_of(record->upid, record->time_ns);
	*event = (struct gathering){
		.next = *bucket,
		.upid = record->upid,
		.time_ns = record->time_ns,
		.cpu = record->cpu,
	};
	*bucket = event;
	merge.bytes += sizeof(*event);
	wait_for(event);
	return event;
}

static struct gathering *gathering_of(const struct held_record *record)
{
	struct gathering *event = NULL;

	if (merge.n_gatherings)
		event = *bucket_of(record->upid, record->time_ns);
	while (event && (event->upid != record->upid || event->time_ns != record->time_ns ||
			 event->cpu != record->cpu))
		event = event->next;
	return event ? event : begin_gathering(record);
}

static void insert(struct gathering *event, const struct held_record *record)
{
	size_t i = event->n++;

	if (i == event->size)
		resize(&event->records, &event->size, i ? i * 2 : FIRST_RECORDS);
	for (; i && comes_before(record, &event->records[i - 1]); i--)
		event->records[i] = event->records[i - 1];
	event->records[i] = *record;
}

static void gather(const struct held_record *record)
{
	struct gathering *event;

	if (record->upid == merge.given_up_upid && record->time_ns == merge.given_up_ns &&
	    record->cpu == merge.given_up_cpu) {
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
 * A later event of the same task, or of one that has its number now: what was not written before it
 * never will be.
 */
static void give_up_before(s64 upid, u64 time_ns)
{
	struct gathering *event, *next;

	if (!upid)
		return; /* any task */
	for (event = *bucket_of(upid, time_ns); event; event = next) {
		next = event->next;
		if (event->upid && number_of_task(event->upid) == number_of_task(upid) &&
		    event->time_ns < time_ns) {
			counters.incomplete++;
			give_up(event);
		}
	}
}

static void end_waiting_for(struct gathering *event)
{
	if (event->upid) {
		set_aside(event);
		return;
	}
	counters.incomplete++; /* no later event will show that it is */
	give_up(event);
}

static bool must_wait(u64 time_ns, u64 patience_ns)
{
	if (patience_ns == TIME_MAX)
		return false;
	while (merge.earliest && merge.earliest->time_ns < patience_ns)
		end_waiting_for(merge.earliest);
	return merge.earliest && merge.earliest->time_ns < time_ns;
}

static void emit_until(struct horizon horizon)
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

void merge_emit(struct horizon horizon)
{
	emit_until(horizon);
	shrink_runs();
}
