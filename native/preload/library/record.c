// SPDX-License-Identifier: Apache-2.0
/*
 * Records -> chunks of the shared memory.
 *
 * The state of a process is in a page of its own that the kernel clears in a forked child
 * (MADV_WIPEONFORK) and leaves alone in a child that shares the memory (vfork): a cleared page means
 * that this is a new process. `last_pid` lies elsewhere, is inherited, and names its parent.
 *
 * Each record is written into a chunk that belongs to this writer alone for as long as it takes, so
 * that threads and signal handlers do not meet: whoever finds a writer in use takes the next one.
 */
#include "record.h"

#define MADV_WIPEONFORK 18
#define STATE_BYTES 4096
#define ALIGN 8u

int clock_gettime(int clock, struct clock *now) WEAK;
int sched_getcpu(void) WEAK;

static int last_pid;
static bool is_asked_always; /* the kernel does not clear the page */

void record_connect(char **environment)
{
	int pid = (int)CALL0(__NR_getpid);
	long page;

	if (!ring_connect(environment, pid))
		return;
	page = map_memory(STATE_BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (is_error(page)) {
		ring_give_up();
		return;
	}
	state = (struct state *)page;
	is_asked_always = CALL3(__NR_madvise, page, STATE_BYTES, MADV_WIPEONFORK) < 0;
	state->pid = pid;
	last_pid = pid;
}

uint64_t record_now(void)
{
	struct clock now = { 0, 0 };

	if (!clock_gettime || clock_gettime(1, &now))
		CALL2(__NR_clock_gettime, 1, &now);
	return (uint64_t)now.seconds * 1000000000u + (uint64_t)now.nanoseconds;
}

static void announce(enum ring_kind kind, int pid, int parent);

/* A child that has none in its PID namespace is the first one there. */
static bool is_outside(void)
{
	return !CALL0(__NR_getppid);
}

/* A forked child: its page is clear. */
static void begin_process(void)
{
	int parent = last_pid;

	state->pid = (int)CALL0(__NR_getpid);
	if (is_outside()) {
		announce(RING_LEFT, parent, 0);
		record_leave();
		ring_silence();
		return;
	}
	last_pid = state->pid;
	announce(RING_BORN, state->pid, parent);
}

static void forget_parent(void)
{
	size_t i;
	char *at = (char *)state;

	for (i = 0; i < sizeof(*state); i++)
		at[i] = 0;
}

int record_pid(void)
{
	int pid;

	if (state->pid && !state->may_share && !is_asked_always)
		return state->pid;
	if (!state->pid) {
		begin_process();
		return state->pid;
	}
	pid = (int)CALL0(__NR_getpid);
	if (pid == state->pid)
		return pid;
	if (is_asked_always && !state->may_share) {
		forget_parent();
		begin_process();
	} else if (pid != state->sharing_pid) {
		state->sharing_pid = pid;
		state->is_sharer_lost = is_outside();
		if (state->is_sharer_lost)
			announce(RING_LEFT, state->pid, 0);
		else
			announce(RING_BORN, pid, state->pid);
	}
	return state->is_sharer_lost ? -1 : pid;
}

void record_expect_sharing(void)
{
	if (!ring)
		return;
	record_pid();
	state->may_share = true;
}

bool record_is_sharing(void)
{
	return state && state->may_share && record_pid() != state->pid;
}

/* ---- records ---- */

static void begin_part(struct record *record)
{
	struct writer *writer = record->writer;
	char *start;
	size_t left;

	if (!writer->chunk && !chunk_take(writer) && !chunk_wait(writer)) {
		record->head = NULL;
		state->waited_in_vain = true;
		return;
	}
	state->waited_in_vain = false;
	left = CHUNK_BYTES - writer->head;
	if (left < sizeof(struct ring_record) + ALIGN) {
		chunk_give_back(writer);
		begin_part(record);
		return;
	}
	start = chunk_bytes(writer);
	record->head = (struct ring_record *)(start + writer->head);
	record->at = (char *)(record->head + 1);
	record->end = start + CHUNK_BYTES;
	*record->head = record->values;
}

static void end_part(struct record *record, uint32_t flags)
{
	struct writer *writer = record->writer;
	struct ring_record *head = record->head;
	size_t n = (size_t)(record->at - (char *)(head + 1));
	uint32_t size = (uint32_t)((sizeof(*head) + n + ALIGN - 1) & ~(size_t)(ALIGN - 1));

	head->n_bytes = (uint32_t)n;
	head->flags = flags;
	head->size = size;
	writer->head += size;
	__atomic_store_n(&chunk_of(writer)->head, writer->head, __ATOMIC_RELEASE);
}

static void begin(struct record *record, enum ring_kind kind, uint64_t time_ns, int pid)
{
	struct ring_record *values = &record->values;
	int i;

	record->head = NULL;
	record->writer = NULL;
	if (pid < 0 || ring_is_silent())
		return;
	record->writer = writer_take();
	if (!record->writer) {
		__atomic_add_fetch(&ring->lost, 1, __ATOMIC_RELAXED);
		return;
	}
	values->kind = (uint16_t)kind;
	values->part = 0;
	values->pid = (uint32_t)pid;
	values->cpu = sched_getcpu ? (uint32_t)sched_getcpu() : 0;
	values->time_ns = time_ns;
	values->id = __atomic_add_fetch(&state->last_id, 1, __ATOMIC_RELAXED);
	for (i = 0; i < RING_N_ARGS; i++)
		values->args[i] = 0;
	begin_part(record);
}

/* The process; what it has loaded until now is recorded first. */
static int pid_after_objects(enum ring_kind kind)
{
	int pid = record_pid();

	if (state->look && kind != RING_OBJECTS && pid == state->pid)
		state->look();
	return pid;
}

void record_begin_at(struct record *record, enum ring_kind kind, uint64_t time_ns)
{
	record->head = NULL;
	record->writer = NULL;
	if (ring_is_on())
		begin(record, kind, time_ns, pid_after_objects(kind));
}

void record_begin(struct record *record, enum ring_kind kind)
{
	int pid;

	record->head = NULL;
	record->writer = NULL;
	if (!ring_is_on())
		return;
	pid = pid_after_objects(kind); /* it may announce the process, before the time is taken */
	begin(record, kind, record_now(), pid);
}

static void put_bytes(struct record *record, const char *from, size_t n)
{
	while (n && record->head) {
		size_t room = (size_t)(record->end - record->at);
		size_t part = n < room ? n : room;

		copy(record->at, from, part);
		record->at += part;
		from += part;
		n -= part;
		if (n) {
			end_part(record, RING_MORE);
			chunk_give_back(record->writer);
			record->values.part++;
			begin_part(record);
		}
	}
}

void record_string(struct record *record, const char *text, size_t n)
{
	uint32_t size = (uint32_t)n;

	put_bytes(record, (const char *)&size, sizeof(size));
	put_bytes(record, text, n);
}

void record_end(struct record *record)
{
	if (!record->writer)
		return;
	if (record->head) {
		copy(record->head->args, record->values.args, sizeof(record->values.args));
		end_part(record, 0);
	} else {
		__atomic_add_fetch(&ring->lost, 1, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&record->writer->busy, 0, __ATOMIC_RELEASE);
}

void record_put_at(enum ring_kind kind, uint64_t time_ns, int a, int b, int c)
{
	struct record record;

	record_begin_at(&record, kind, time_ns);
	record.values.args[0] = a;
	record.values.args[1] = b;
	record.values.args[2] = c;
	record_end(&record);
}

void record_put(enum ring_kind kind, int a, int b, int c)
{
	struct record record;

	record_begin(&record, kind);
	record.values.args[0] = a;
	record.values.args[1] = b;
	record.values.args[2] = c;
	record_end(&record);
}

static void announce(enum ring_kind kind, int pid, int parent)
{
	struct record record;

	begin(&record, kind, record_now(), pid);
	record.values.args[0] = parent;
	record_end(&record);
}

void record_leave(void)
{
	int i;

	if (!ring_is_on() || record_is_sharing())
		return;
	for (i = 0; i < N_WRITERS; i++)
		if (!state->writers[i].busy)
			chunk_give_back(&state->writers[i]);
}

void record_stop(void)
{
	if (state && !record_is_sharing())
		state->is_over = true;
}
