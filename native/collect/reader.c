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
#include "merge.h"
#include "page.h"

#define STRETCH_NS 20000000u /* of a saved instance that is read at once */
#define WOKEN_IN_VAIN_PERCENT 5
#define PAGES_MIN 2 /* a CPU may always have: one that is read, one whose records are held */
#define TRIES_AT_END 100 /* to read a buffer, RETRY_NS apart */
#define RETRY_NS 10000000u

/* Something that may happen many times a second: said the first time, and at doubled counts. */
struct tally {
	u64 n;
	u64 n_said;
};

struct cpu {
	struct cpu_buffer buffer;
	u64 dropped; /* as the kernel counts, the last time that it was asked */
	struct tally lost; /* dropped records */
	struct tally missed; /* overwritten records */
	struct tally damaged; /* pages */
	struct tally failed; /* reads */
	unsigned int n_tries; /* failed reads since the last good one, before the end 1 at most */
	u64 n_pages; /* in use */
	u64 read_ns; /* all that was written before this instant was read */
	bool cut_short; /* by want of memory, in this round */
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
	bool failed; /* to read a buffer, in this round */
	struct tally given_up; /* events, for lack of memory */
} reader;

/* True when it is time to say how many there were. */
static bool count(struct tally *tally, u64 n)
{
	tally->n += n;
	if (tally->n < 2 * tally->n_said)
		return false;
	tally->n_said = tally->n;
	return true;
}

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
		instance_dropped(&buffers[i], &reader.cpus[i].dropped);
		reader.watched[i] = (struct pollfd){ .fd = buffers[i].fd, .events = POLLIN };
	}
	if (!options.raw && instance_wake_percent())
		reader.n_watched = reader.n_cpus;
	merge_init(reader.n_cpus);
	free(buffers);
}

static void note_damage(struct cpu *cpu, const struct page_cursor *cursor)
{
	counters.damaged++;
	if (!count(&cpu->damaged, 1))
		return;
	say("cpu %u: the page at byte %" PRIu64 " is damaged at its byte %u: the rest of it is left "
	    "out, with an unknown number of events", cpu->buffer.number, cpu->offset, cursor->at);
}

static void note_missed(struct cpu *cpu, const struct page_cursor *cursor)
{
	u64 n = cursor->n_missed ? cursor->n_missed : 1;

	counters.overwritten += n;
	if (!count(&cpu->missed, n))
		return;
	say("cpu %u: %s%" PRIu64 " %s could be read: write 0 to "
	    "'%s/options/overwrite', and make buffer_size_kb larger", cpu->buffer.number,
	    cursor->n_missed ? "" : "at least ", cpu->missed.n,
	    cpu->missed.n == 1 ? "record was overwritten before it"
			       : "records were overwritten before they",
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
		say("cpu %u: a record on the page at byte %" PRIu64 " is malformed and left "
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

/*
 * The kernel has no page to spare: what is in the buffer stays there. At the end the next round is
 * not waited for forever.
 */
static void try_again(struct cpu *cpu)
{
	counters.failed_reads++;
	reader.failed = true;
	cpu->n_tries = stop_requested ? cpu->n_tries + 1 : 1;
	if (count(&cpu->failed, 1))
		say("cpu %u: cannot read its buffer now: %s; it is tried again (%" PRIu64
		    " failed so far)", cpu->buffer.number, strerror(errno), cpu->failed.n);
	if (cpu->n_tries > TRIES_AT_END)
		note_read_error(cpu);
}

/* One page; false when there is none now. */
static bool read_page(struct cpu *cpu)
{
	size_t size = reader.layout.page_bytes;
	struct page *page = cpu->partial ? cpu->partial : pool_get(&cpu->n_pages);
	ssize_t n;

	cpu->partial = page;
	n = read(cpu->buffer.fd, page->data + cpu->n_partial, size - cpu->n_partial);
	if (n < 0 && (errno == ENOMEM || errno == EINTR) && !options.raw)
		try_again(cpu);
	else if (n < 0 && errno != EAGAIN)
		note_read_error(cpu);
	else if (n <= 0 && options.raw)
		end_cpu(cpu);
	if (n >= 0 || errno == EAGAIN)
		cpu->n_tries = 0;
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

/*
 * Half of the memory is for whoever needs it, of the other half each CPU has its share: one with
 * much to read leaves room for those that are earlier in time.
 */
static bool has_room(const struct cpu *cpu)
{
	u64 held = pool_bytes() + merge_bytes();
	u64 own = cpu->n_pages * reader.layout.page_bytes +
		  merge_cpu_bytes((size_t)(cpu - reader.cpus));

	if (cpu->n_pages <= PAGES_MIN || held < options.memory / 2)
		return true;
	return held < options.memory && own < options.memory / 2 / reader.n_cpus;
}

/* Pages are read until one ends after `until_ns`: all that was written before is in them. */
static u64 read_cpu(struct cpu *cpu, u64 until_ns)
{
	u64 before = cpu->offset;
	bool more = !cpu->ended;

	cpu->cut_short = false;
	while (more && !cpu->cut_short) {
		cpu->cut_short = !has_room(cpu);
		if (!cpu->cut_short)
			more = read_page(cpu) && cpu->last_ns < until_ns &&
			       !(options.raw && stop_requested);
	}
	if (!cpu->cut_short && !cpu->n_tries)
		cpu->read_ns = until_ns;
	else if (cpu->last_ns > cpu->read_ns)
		cpu->read_ns = cpu->last_ns;
	return cpu->offset - before;
}

/* The one that was cut short first in time: further on, records of it may still come in between. */
static struct cpu *last_in_time(void)
{
	struct cpu *last = NULL;
	size_t i;

	for (i = 0; i < reader.n_cpus; i++)
		if (reader.cpus[i].cut_short &&
		    (!last || reader.cpus[i].read_ns < last->read_ns))
			last = &reader.cpus[i];
	return last;
}

static void give_up_events(void)
{
	u64 n = merge_give_up();

	counters.no_room += n;
	if (n && count(&reader.given_up, n))
		say("%" PRIu64 " %s given up: their records waited for others and held more than "
		    "%" PRIu64 " MiB of memory (--memory)", reader.given_up.n,
		    reader.given_up.n == 1 ? "event was" : "events were", options.memory >> 20);
}

/* For the CPU that is last in time; gives up the order only as a last resort. */
static void make_memory(const struct cpu *cpu)
{
	const struct horizon horizons[] = {
		{ .before_ns = cpu->read_ns, .patience_ns = 0 },
		{ .before_ns = cpu->read_ns, .patience_ns = TIME_MAX },
		{ .before_ns = TIME_MAX, .patience_ns = TIME_MAX },
	};
	size_t i;

	for (i = 0; i < sizeof(horizons) / sizeof(horizons[0]); i++) {
		merge_emit(horizons[i]);
		if (has_room(cpu))
			return;
	}
	give_up_events();
}

/* After a round: the time up to which all was read. */
static u64 end_round(u64 until_ns)
{
	struct cpu *last = last_in_time();

	counters.rounds++;
	if (!last)
		return until_ns;
	make_memory(last);
	return last->read_ns < until_ns ? last->read_ns : until_ns;
}

bool reader_has_more(void)
{
	size_t i;

	for (i = 0; i < reader.n_cpus; i++)
		if (!reader.cpus[i].ended &&
		    (reader.cpus[i].cut_short || reader.cpus[i].n_tries))
			return true;
	return false;
}

unsigned int reader_round(u64 *now_ns)
{
	unsigned int fullest = 0;
	size_t i;

	reader.failed = false;
	for (i = 0; i < reader.n_cpus; i++) {
		struct cpu *cpu = &reader.cpus[i];
		u64 percent;

		cpu->last_ns = 0;
		percent = read_cpu(cpu, *now_ns) * 100 / (cpu->buffer.bytes + 1);
		if (percent > fullest)
			fullest = (unsigned int)percent;
	}
	if (reader.woken && fullest < WOKEN_IN_VAIN_PERCENT)
		reader.n_watched = 0; /* this kernel wakes for any record: the clock alone is cheaper */
	*now_ns = end_round(*now_ns);
	if (reader.failed && stop_requested)
		stop_wait(NULL, 0, RETRY_NS, true); /* reader_wait() no longer waits */
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
	*now_ns = end_round(more ? until : TIME_MAX);
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
	int n = stop_wait(reader.watched, reader.n_watched, interval_ns, false);

	reader.woken = n > 0;
	if (n > 0)
		stop_watching_failed();
}

/* Fewer than before: the buffer was emptied, and the kernel's count began again. */
void reader_check_losses(void)
{
	size_t i;

	for (i = 0; i < reader.n_cpus; i++) {
		struct cpu *cpu = &reader.cpus[i];
		u64 now, n;

		if (!instance_dropped(&cpu->buffer, &now))
			continue;
		n = now < cpu->dropped ? now : now - cpu->dropped;
		cpu->dropped = now;
		counters.dropped += n;
		if (n && count(&cpu->lost, n))
			say("cpu %u: %" PRIu64 " %s lost because its buffer was full: "
			    "make '%s/buffer_size_kb' larger", cpu->buffer.number, cpu->lost.n,
			    cpu->lost.n == 1 ? "record was" : "records were", instance_name());
	}
}
