// SPDX-License-Identifier: Apache-2.0
/*
 * The shared memory that the environment names, writers of a process, and the chunks that they fill.
 * All of it may be interrupted by itself.
 */
#include "chunk.h"

#include "paths.h"

#define AF_UNIX 1
#define SOCK_DGRAM 2
#define SOCK_CLOEXEC 02000000
#define SOL_SOCKET 1
#define SO_SNDTIMEO 21
#define MSG_NOSIGNAL 0x4000
#define SEEK_END 2
#define MAX_WAITS 200 /* for a free chunk; each is a millisecond */

struct ring_header *ring;
struct state *state;

static char *later; /* the chunks after the first; NULL before they are needed */
static char variable[RING_VALUE_MAX];
static char ring_path[64];
static const char *library = "";
static unsigned int wants;
static bool is_silent; /* this process and what it forks */
static bool is_limited; /* there was no room: a limit of descriptors or of memory */

/* ---- the shared memory ---- */

/* In a PID namespace of its own it has another number than the collector sees. */
static bool is_known_as(int pid)
{
	char text[12];
	long n = CALL4(__NR_readlinkat, AT_FDCWD, "/proc/self", text, sizeof(text));
	int number = 0;
	long i;

	for (i = 0; i < n; i++)
		number = 10 * number + (text[i] - '0');
	return n > 0 && number == pid && CALL0(__NR_getppid) > 0;
}

/* A part of the shared memory; NULL when it cannot be mapped. */
static char *map_part(const char *path, size_t offset, size_t n)
{
	long fd;
	long at;
	long size;

	fd = CALL4(__NR_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0);
	is_limited = fd == -EMFILE;
	if (fd < 0)
		return NULL;
	/* after the collector's end its number may be another's, and the file a short one */
	size = CALL3(__NR_lseek, fd, 0, SEEK_END);
	at = size == (long)RING_BYTES ? map_memory(n, MAP_SHARED, fd, offset) : -1;
	CALL1(__NR_close, fd);
	is_limited = at == -ENOMEM;
	return is_error(at) ? NULL : (char *)at;
}

/* A limit of the build's memory (RLIMIT_AS) counts what is mapped: few need more than the first chunks. */
static void map_ring(const char *path)
{
	ring = (struct ring_header *)map_part(path, 0, RING_FIRST_BYTES);
	if (!ring)
		return;
	if (ring->magic != RING_MAGIC || ring->version != RING_VERSION)
		ring = NULL;
}

/* `PATH:WANTS:LIBRARY`; the path is without a colon. */
static void read_variable(const char *value)
{
	size_t n = length(value);
	size_t i = 0;

	while (value[i] && value[i] != ':')
		i++;
	if (n >= sizeof(variable) || i >= sizeof(ring_path) || i + 3 > n || value[i + 2] != ':')
		return;
	copy(variable, value, n + 1);
	copy(ring_path, value, i);
	ring_path[i] = '\0';
	wants = (unsigned int)(value[i + 1] - '0');
	library = variable + i + 3;
	map_ring(ring_path);
}

/*
 * This program cannot open the shared memory, or does not know its own number there: /proc is of
 * another PID namespace, or the process is in another user namespace, or has no room for it. Send its
 * path, with a null after it in the last case, to the collector's socket, whose abstract name every
 * process of the same network namespace reaches.
 */
static void report_outside(void)
{
	struct {
		uint16_t family;
		char name[RING_SOCKET_MAX]; /* the first byte is 0 */
	} address = { AF_UNIX, { 0 } };
	long patience[2] = { 0, 200000 }; /* s, us: the collector may be slow, or stopped */
	size_t n = length(ring_path);
	struct path program;
	long fd;

	if (n + 1 > sizeof(address.name))
		return;
	copy(address.name + 1, ring_path, n);
	path_of_program(&program);
	program.text[program.n] = '\0';
	fd = CALL3(__NR_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	CALL5(__NR_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, patience, sizeof(patience));
	CALL6(__NR_sendto, fd, program.text, program.n + is_limited, MSG_NOSIGNAL, &address,
	      sizeof(address.family) + 1 + n);
	CALL1(__NR_close, fd);
}

bool ring_connect(char **environment, int pid)
{
	const size_t n = sizeof(RING_VARIABLE "=") - 1;

	for (; *environment && !ring; environment++)
		if (starts(*environment, RING_VARIABLE "=", n))
			read_variable(*environment + n);
	if (*library && (!ring || !is_known_as(pid))) {
		ring = NULL;
		report_outside();
	}
	return ring;
}

void ring_give_up(void)
{
	ring = NULL;
	is_limited = true;
	report_outside();
}

const char *ring_variable(void)
{
	return variable;
}

const char *ring_library(void)
{
	return library;
}

unsigned int ring_wants(void)
{
	return wants;
}

bool ring_is_on(void)
{
	return ring && !is_silent && !state->is_over &&
	       __atomic_load_n(&ring->is_open, __ATOMIC_RELAXED);
}

bool ring_is_silent(void)
{
	return is_silent;
}

void ring_silence(void)
{
	is_silent = true;
}

/* ---- chunks ---- */

struct ring_chunk *chunk_of(const struct writer *writer)
{
	return &ring->chunks[writer->chunk - 1];
}

char *chunk_bytes(const struct writer *writer)
{
	uint32_t i = writer->chunk - 1;

	return i < FIRST_CHUNKS ? (char *)ring + RING_HEADER_BYTES + i * CHUNK_BYTES :
				  later + (i - FIRST_CHUNKS) * CHUNK_BYTES;
}

/* Another thread may do the same. */
static bool map_later(void)
{
	char *none = NULL;
	char *mapped;

	if (__atomic_load_n(&later, __ATOMIC_ACQUIRE))
		return true;
	mapped = map_part(ring_path, RING_FIRST_BYTES, RING_BYTES - RING_FIRST_BYTES);
	if (mapped && !__atomic_compare_exchange_n(&later, &none, mapped, false, __ATOMIC_ACQ_REL,
						   __ATOMIC_ACQUIRE))
		CALL2(__NR_munmap, mapped, RING_BYTES - RING_FIRST_BYTES);
	return mapped;
}

bool chunk_take(struct writer *writer)
{
	uint32_t n = __atomic_load_n(&ring->n_chunks, __ATOMIC_ACQUIRE);
	uint32_t i;

	for (i = 0; i < n && i < MAX_CHUNKS && (i < FIRST_CHUNKS || map_later()); i++) {
		struct ring_chunk *chunk = &ring->chunks[i];
		uint32_t expected = RING_FREE;

		if (__atomic_load_n(&chunk->state, __ATOMIC_RELAXED) != RING_FREE ||
		    !__atomic_compare_exchange_n(&chunk->state, &expected, RING_TAKEN, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&chunk->pid, (uint32_t)state->pid, __ATOMIC_RELEASE);
		writer->chunk = i + 1;
		writer->head = 0;
		return true;
	}
	return false;
}

/* The collector frees chunks all the time; it may also be slow, stopped or gone. */
bool chunk_wait(struct writer *writer)
{
	struct clock pause = { 0, 1000000 };
	int i;

	for (i = 0; i < MAX_WAITS && ring_is_on() && !state->waited_in_vain; i++) {
		if (chunk_take(writer))
			return true;
		CALL2(__NR_nanosleep, &pause, 0);
	}
	return false;
}

void chunk_give_back(struct writer *writer)
{
	if (writer->chunk)
		__atomic_store_n(&chunk_of(writer)->state, RING_FULL, __ATOMIC_RELEASE);
	writer->chunk = 0;
}

struct writer *writer_take(void)
{
	int turn;
	int i;

	for (turn = 0; turn < MAX_TURNS; turn++) {
		for (i = 0; i < N_WRITERS; i++) {
			uint32_t expected = 0;

			if (__atomic_compare_exchange_n(&state->writers[i].busy, &expected, 1,
							false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				return &state->writers[i];
		}
		CALL0(__NR_sched_yield);
	}
	return NULL;
}
