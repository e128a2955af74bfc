// SPDX-License-Identifier: Apache-2.0
/*
 * Chunks of the shared memory -> records. The memory is a file without a name (memfd) that the build
 * opens below /proc/PID/fd of this process: nothing is left however the capture ends. Its
 * memory is allocated before it is used, so that no process of the build runs into a full system.
 *
 * Every process of the build can write anything anywhere in it, at any time: what is read is copied
 * first and then checked.
 */
#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/program.h"
#include "capture/rlimits.h"

#define STEP_CHUNKS 256u /* 2 MB */
#define MAX_PARTIAL_BYTES (64u << 20)
#define MAX_PARTS 2048u /* 16 MB; an execution has 6 MB of strings at most */
#define MEMFD_NOEXEC 8u /* Linux 6.3 */

static struct ring_header *ring;
static int ring_fd;
static char variable[RING_VALUE_MAX];
static uint32_t n_read[MAX_CHUNKS]; /* bytes of a chunk that were taken out */
static uint32_t n_chunks;
static uint32_t is_open;
static uint64_t n_arrived;
static uint64_t n_damaged;

/* Parts of records whose other parts have not come yet. */
static struct part {
	struct part *next;
	struct event *event;
} *first_part;
static size_t partial_bytes;
static size_t n_parts;

static void allocate(uint32_t chunks)
{
	if (chunks > MAX_CHUNKS)
		chunks = MAX_CHUNKS;
	if (fallocate(ring_fd, 0, 0, (off_t)(RING_HEADER_BYTES + (size_t)chunks * CHUNK_BYTES)) < 0) {
		if (!n_chunks)
			die("no memory for the events of the build: %s%s", strerror(errno), limits_blame(errno));
		return;
	}
	n_chunks = chunks;
	__atomic_store_n(&ring->n_chunks, chunks, __ATOMIC_RELEASE);
}

void ring_create(const char *library, uint32_t wants)
{
	const char *lack = limits_lack(RLIMIT_FSIZE, RING_BYTES);

	if (lack)
		die("%s", lack);
	ring_fd = memfd_create("etrace", MFD_CLOEXEC | MFD_ALLOW_SEALING | MEMFD_NOEXEC);
	if (ring_fd < 0 && errno == EINVAL)
		ring_fd = memfd_create("etrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* who shortens it would end this process and all of the build by SIGBUS */
	if (ring_fd < 0 || ftruncate(ring_fd, RING_BYTES) < 0 ||
	    fcntl(ring_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		die("no memory for the events of the build: %s%s", strerror(errno), limits_blame(errno));
	ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, 0);
	if (ring == MAP_FAILED)
		die("no memory for the events of the build: %s%s", strerror(errno), limits_blame(errno));
	allocate(STEP_CHUNKS);
	snprintf(variable, sizeof(variable), "/proc/%d/fd/%d:%u:%s", getpid(), ring_fd, wants, library);
	ring->version = RING_VERSION;
	ring->magic = RING_MAGIC;
	ring->is_open = is_open = 1;
}

const char *ring_variable(void)
{
	return variable;
}

/* ---- records in parts ---- */

static bool is_of_same(const struct event *a, const struct event *b)
{
	return a->head.pid == b->head.pid && a->head.id == b->head.id &&
	       a->head.kind == b->head.kind && a->head.time_ns == b->head.time_ns;
}

static struct event *take_part(const struct event *of, uint16_t number)
{
	struct part **at;

	for (at = &first_part; *at; at = &(*at)->next) {
		struct part *part = *at;
		struct event *event = part->event;

		if (!is_of_same(event, of) || event->head.part != number)
			continue;
		*at = part->next;
		partial_bytes -= event->n_bytes;
		n_parts--;
		free(part);
		return event;
	}
	return NULL;
}

static bool keep_part(struct event *event)
{
	struct part *part;

	if (partial_bytes + event->n_bytes > MAX_PARTIAL_BYTES || n_parts == MAX_PARTS) {
		n_damaged++;
		free(event);
		return false;
	}
	part = must_alloc(sizeof(*part));
	*part = (struct part){ first_part, event };
	first_part = part;
	partial_bytes += event->n_bytes;
	n_parts++;
	return true;
}

/* How many parts a record has when as many are there, else 0; `n_bytes`: of their strings. */
static uint32_t count_parts(const struct event *of, uint32_t *n_bytes)
{
	const struct part *part;
	uint32_t n_here = 0;
	uint32_t n = 0;

	*n_bytes = 0;
	for (part = first_part; part; part = part->next) {
		if (!is_of_same(part->event, of))
			continue;
		n_here++;
		*n_bytes += part->event->n_bytes;
		if (!(part->event->head.flags & RING_MORE))
			n = part->event->head.part + 1u;
	}
	return n_here == n ? n : 0;
}

/* The whole record when all of its parts are there; its arguments are those of the last one. */
static struct event *join_parts(const struct event *of)
{
	struct ring_record head = of->head;
	const struct event key = { .head = head };
	struct event *whole;
	uint32_t n_bytes;
	uint32_t n = count_parts(of, &n_bytes);
	uint32_t i;

	if (!n)
		return NULL;
	whole = must_alloc(sizeof(*whole) + n_bytes);
	whole->n_bytes = 0;
	for (i = 0; i < n; i++) {
		struct event *part = take_part(&key, (uint16_t)i);

		if (!part) { /* another came twice */
			n_damaged++;
			free(whole);
			return NULL;
		}
		memcpy(whole->bytes + whole->n_bytes, part->bytes, part->n_bytes);
		whole->n_bytes += part->n_bytes;
		whole->head = part->head;
		free(part);
	}
	return whole;
}

static void receive_part(struct event *event, void (*receive)(struct event *event))
{
	if (event->head.part || (event->head.flags & RING_MORE))
		event = keep_part(event) ? join_parts(event) : NULL;
	if (!event)
		return;
	event->order = ++n_arrived;
	receive(event);
}

/* ---- chunks ---- */

static const char *bytes_of(uint32_t chunk)
{
	return (const char *)ring + RING_HEADER_BYTES + (size_t)chunk * CHUNK_BYTES;
}

static bool is_record(const struct ring_record *head, uint32_t left)
{
	return head->size >= sizeof(*head) && head->size <= left && head->size % 8 == 0 &&
	       head->n_bytes <= head->size - sizeof(*head) && head->kind &&
	       head->kind < N_RING_KINDS && head->pid && head->pid <= RING_PID_LIMIT;
}

/*
 * A copy of the record at `from`, where `left` bytes remain; NULL when it is not a record. A time in
 * the future becomes `now`.
 */
static struct event *copy_record(const char *from, uint32_t left, uint64_t now)
{
	struct ring_record head;
	struct event *event;

	if (left < sizeof(head))
		return NULL;
	memcpy(&head, from, sizeof(head));
	if (!is_record(&head, left))
		return NULL;
	if (head.time_ns > now)
		head.time_ns = now;
	event = must_alloc(sizeof(*event) + head.n_bytes);
	event->head = head;
	event->n_bytes = head.n_bytes;
	memcpy(event->bytes, from + sizeof(head), head.n_bytes);
	return event;
}

static void drain_chunk(uint32_t i, void (*receive)(struct event *event))
{
	uint32_t head = __atomic_load_n(&ring->chunks[i].head, __ATOMIC_ACQUIRE);

	if (head > CHUNK_BYTES)
		head = CHUNK_BYTES;
	while (n_read[i] < head) {
		struct event *event =
			copy_record(bytes_of(i) + n_read[i], head - n_read[i], monotonic_ns());

		if (!event) {
			n_damaged++;
			n_read[i] = head;
			return;
		}
		n_read[i] += event->head.size;
		receive_part(event, receive);
	}
}

static void free_chunk(uint32_t i)
{
	n_read[i] = 0;
	ring->chunks[i].head = 0;
	ring->chunks[i].pid = 0;
	__atomic_store_n(&ring->chunks[i].state, RING_FREE, __ATOMIC_RELEASE);
}

/* With a head that a program changed, the library would not write, or where nobody reads. */
static void restore_head(void)
{
	if (ring->magic == RING_MAGIC && ring->version == RING_VERSION &&
	    ring->n_chunks == n_chunks && ring->is_open == is_open)
		return;
	n_damaged++;
	ring->magic = RING_MAGIC;
	ring->version = RING_VERSION;
	ring->n_chunks = n_chunks;
	ring->is_open = is_open;
}

void ring_drain(void (*receive)(struct event *event))
{
	uint32_t n_free = 0;
	uint32_t i;

	restore_head();
	for (i = 0; i < n_chunks; i++) {
		uint32_t state = __atomic_load_n(&ring->chunks[i].state, __ATOMIC_ACQUIRE);

		n_free += state == RING_FREE;
		if (state == RING_FREE)
			continue;
		drain_chunk(i, receive);
		if (state == RING_FULL)
			free_chunk(i);
	}
	if (n_free < n_chunks / 4 && n_chunks < MAX_CHUNKS)
		allocate(n_chunks + STEP_CHUNKS);
}

/* Right after ring_drain(): what they wrote has been taken out. */
void ring_reclaim(void)
{
	uint32_t i;

	for (i = 0; i < n_chunks; i++) {
		struct ring_chunk *chunk = &ring->chunks[i];
		pid_t pid = (pid_t)__atomic_load_n(&chunk->pid, __ATOMIC_ACQUIRE);

		if (chunk->state == RING_TAKEN && pid > 0 && kill(pid, 0) < 0 && errno == ESRCH)
			__atomic_store_n(&chunk->state, RING_FULL, __ATOMIC_RELEASE);
	}
}

void ring_close(void)
{
	is_open = 0;
	__atomic_store_n(&ring->is_open, 0, __ATOMIC_RELEASE);
}

uint64_t ring_lost(void)
{
	return ring->lost;
}

uint64_t ring_damaged(void)
{
	return n_damaged;
}
