// SPDX-License-Identifier: Apache-2.0
/*
 * Per-CPU buffers -> held records. One thread reads all CPUs in turn: each read() hands over one
 * page of the ring buffer, without copying it in the kernel when it is full. Buffers of CPUs that
 * are offline stay readable, those of CPUs that were never online read as empty.
 */
#include "reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect.h"
#include "instance.h"
#include "layout.h"
#include "merge.h"
#include "pool.h"
#include "signals.h"

#define STRETCH_NS 20000000u /* of a saved instance that is read at once */
#define WOKEN_IN_VAIN_PERCENT 5

struct cpu {
	struct cpu_buffer buffer;
	struct cpu_losses losses; /* already counted */
	u64 offset; /* of the page being read, from the first one: for messages */
	struct page *partial; /* a page of which the end has not come yet (a pipe) */
	size_t n_partial;
	u64 last_ns; /* of the last record read */
	bool ended;
};

static struct {
	struct cpu *cpus;
	size_t n_cpus;
	struct page_layout layout;
	struct pollfd *watched;
	size_t n_watched;
	bool woken; /* by a buffer, not by the clock */
} reader;

void reader_open(void)
{
	struct cpu_buffer *buffers;
	size_t i;

	instance_open(&reader.layout);
	pool_init(reader.layout.page_bytes);
	reader.n_cpus = instance_open_buffers(&buffers);
	reader.cpus = must_realloc(NULL, reader.n_cpus * sizeof(*reader.cpus));
	reader.watched = must_realloc(NULL, reader.n_cpus * sizeof(*reader.watched));
	for (i = 0; i < reader.n_cpus; i++) {
		reader.cpus[i] = (struct cpu){ .buffer = buffers[i] };
		reader.cpus[i].losses = instance_losses(buffers[i].number);
		reader.watched[i] = (struct pollfd){ .fd = buffers[i].fd, .events = POLLIN };
	}
	if (!options.raw && instance_wake_percent())
		reader.n_watched = reader.n_cpus;
	merge_init(reader.n_cpus);
	free(buffers);
}

static void note_damage(const struct cpu *cpu, const struct page_cursor *cursor)
{
	counters.damaged++;
	say("cpu %u: the page at byte %" PRIu64 " is damaged at its byte %u: the rest of it is left "
	    "out, with an unknown number of events", cpu->buffer.number, cpu->offset, cursor->at);
}

static void note_missed(const struct cpu *cpu, const struct page_cursor *cursor)
{
	counters.overwritten += cursor->n_missed ? cursor->n_missed : 1;
	say("cpu %u: %s%" PRIu64 " record(s) were overwritten before they could be read: write 0 to "
	    "'%s/options/overwrite', and make buffer_size_kb larger", cpu->buffer.number,
	    cursor->n_missed ? "" : "at least ", cursor->n_missed ? cursor->n_missed : 1,
	    instance_name());
}

static void hold(struct cpu *cpu, struct page *page, const struct record_view *view)
{
	struct held_record record = {
		.time_ns = view->time_ns,
		.upid = view->upid,
		.page = page,
		.payload = view->payload,
		.payload_bytes = view->payload_bytes,
		.cpu = view->cpu,
		.flags = view->flags,
	};

	page_use(page);
	merge_add((size_t)(cpu - reader.cpus), &record);
	cpu->last_ns = view->time_ns;
	counters.records++;
}

/* A record whose payload lies outside it, or whose time no clock can have had. */
static void note_bad_record(const struct cpu *cpu)
{
	if (!counters.malformed++)
		say("cpu %u: a record on the page at byte %" PRIu64 " makes no sense: it is left "
		    "out; please report", cpu->buffer.number, cpu->offset);
}

static void take_page(struct cpu *cpu, struct page *page, size_t bytes)
{
	struct page_cursor cursor;
	struct record_view record;
	enum page_result result;

	page_begin(&cursor, &reader.layout, page->data, bytes);
	if (cursor.missed)
		note_missed(cpu, &cursor);
	while ((result = page_next(&cursor, &record)) != PAGE_END) {
		if (result == PAGE_DAMAGED) {
			note_damage(cpu, &cursor);
			break;
		}
		if (result == PAGE_FOREIGN)
			counters.foreign++;
		else if (result == PAGE_BAD_RECORD || record.time_ns > INT64_MAX)
			note_bad_record(cpu);
		else
			hold(cpu, page, &record);
	}
	counters.pages++;
	cpu->offset += bytes;
	page_put(page);
}

static void end_cpu(struct cpu *cpu)
{
	cpu->ended = true;
	if (!cpu->partial)
		return;
	if (cpu->n_partial)
		take_page(cpu, cpu->partial, cpu->n_partial);
	else
		page_put(cpu->partial);
	cpu->partial = NULL;
}

static void note_read_error(struct cpu *cpu)
{
	say("cpu %u: cannot read its buffer: %s; its events are lost from here on",
	    cpu->buffer.number, strerror(errno));
	counters.damaged++;
	end_cpu(cpu);
}

/* One page; false when there is none now. */
static bool read_page(struct cpu *cpu)
{
	size_t size = reader.layout.page_bytes;
	struct page *page = cpu->partial ? cpu->partial : pool_get();
	ssize_t n;

	cpu->partial = page;
	do
		n = read(cpu->buffer.fd, page->data + cpu->n_partial, size - cpu->n_partial);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		note_read_error(cpu);
	else if (n <= 0 && options.raw)
		end_cpu(cpu);
	if (n <= 0)
		return false;
	cpu->n_partial += (size_t)n;
	if (cpu->n_partial == size) {
		cpu->partial = NULL;
		cpu->n_partial = 0;
		take_page(cpu, page, size);
	}
	return true;
}

/* Pages are read until one ends behind `until_ns`: all that was written before is in them. */
static u64 read_cpu(struct cpu *cpu, u64 until_ns)
{
	u64 before = cpu->offset;

	while (!cpu->ended && read_page(cpu))
		if (cpu->last_ns >= until_ns || (options.raw && stop_requested))
			break;
	return cpu->offset - before;
}

static void make_memory(void)
{
	u64 n;

	if (pool_bytes() <= options.memory)
		return;
	merge_emit((struct horizon){ .before_ns = TIME_MAX, .patience_ns = TIME_MAX });
	if (pool_bytes() <= options.memory)
		return;
	n = merge_give_up();
	counters.no_room += n;
	say("%" PRIu64 " event(s) of many records were given up: they waited for further records "
	    "and held more than %" PRIu64 " MiB of memory (--memory)", n, options.memory >> 20);
}

unsigned int reader_round(u64 now_ns)
{
	unsigned int fullest = 0;
	size_t i;

	for (i = 0; i < reader.n_cpus; i++) {
		struct cpu *cpu = &reader.cpus[i];
		u64 percent;

		cpu->last_ns = 0;
		percent = read_cpu(cpu, now_ns) * 100 / (cpu->buffer.bytes + 1);
		if (percent > fullest)
			fullest = (unsigned int)percent;
		make_memory();
	}
	if (reader.woken && fullest < WOKEN_IN_VAIN_PERCENT)
		reader.n_watched = 0; /* this kernel wakes for any record: the clock alone is cheaper */
	counters.rounds++;
	return fullest;
}

bool reader_replay(u64 *now_ns)
{
	u64 until = STRETCH_NS;
	bool more = false;
	size_t i;

	for (i = 0; i < reader.n_cpus; i++)
		if (reader.cpus[i].last_ns + STRETCH_NS > until)
			until = reader.cpus[i].last_ns + STRETCH_NS;
	for (i = 0; i < reader.n_cpus; i++) {
		read_cpu(&reader.cpus[i], until);
		more = more || !reader.cpus[i].ended;
	}
	make_memory();
	counters.rounds++;
	*now_ns = more ? until : TIME_MAX;
	return more;
}

static void stop_watching_failed(void)
{
	size_t i;

	for (i = 0; i < reader.n_watched; i++)
		if (reader.watched[i].revents & ~POLLIN)
			reader.watched[i].fd = -1; /* a CPU that was never online */
}

void reader_wait(u64 interval_ns)
{
	int n = signals_wait(reader.watched, reader.n_watched, interval_ns, false);

	reader.woken = n > 0;
	if (n > 0)
		stop_watching_failed();
}

void reader_check_losses(void)
{
	size_t i;

	for (i = 0; i < reader.n_cpus; i++) {
		struct cpu *cpu = &reader.cpus[i];
		struct cpu_losses now = instance_losses(cpu->buffer.number);
		u64 n = now.dropped - cpu->losses.dropped;

		if (now.dropped <= cpu->losses.dropped)
			continue; /* fewer: somebody emptied the buffer */
		counters.dropped += n;
		cpu->losses = now;
		say("cpu %u: %" PRIu64 " record(s) were lost because its buffer was full: make '%s/"
		    "buffer_size_kb' larger", cpu->buffer.number, n, instance_name());
	}
}
