/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory, the state of a process, and the chunks that it writes to. */
#ifndef ETRACE_PRELOAD_CHUNK_H
#define ETRACE_PRELOAD_CHUNK_H

#include "preload/ring.h"
#include "system.h"

#define N_WRITERS 16
#define MAX_TURNS 1000 /* for a writer: there are fewer than threads */

struct writer {
	uint32_t busy;
	uint32_t chunk; /* its number + 1; 0: none */
	uint32_t head; /* of the chunk: anybody could have changed what the chunk says */
};

struct state {
	int pid; /* 0: the page was cleared, this is a new process */
	int sharing_pid; /* the child in this memory that was announced last */
	bool may_share;
	bool is_sharer_lost; /* it is in another PID namespace: its number is not known */
	void (*look)(void); /* before each record: the program itself has objects loaded */
	bool is_looking; /* for objects, in some thread */
	bool is_over;
	bool waited_in_vain; /* the last time: nobody makes room, and the build does not wait for it */
	uint32_t last_id;
	struct writer writers[N_WRITERS];
};

struct clock {
	long seconds;
	long nanoseconds;
};

/* Both are NULL when nobody listens. */
extern struct ring_header *ring;
extern struct state *state;

/* Map the memory that the environment names, when this process has the number `pid` there. */
bool ring_connect(char **environment, int pid);

/* It is of no use: there is no memory for the state of this process. */
void ring_give_up(void);

/* Whether anybody listens; records may be written whether or not. */
bool ring_is_on(void);

/* Nothing of this process and what it forks is recorded: it may not make the system calls for it. */
void ring_silence(void);
bool ring_is_silent(void);

/* From the environment: the value of RING_VARIABLE, the library, what is wanted. */
const char *ring_variable(void);
const char *ring_library(void);
unsigned int ring_wants(void);

/* A writer that nobody else uses, after at most MAX_TURNS looks; NULL when there is none. */
struct writer *writer_take(void);

struct ring_chunk *chunk_of(const struct writer *writer);
char *chunk_bytes(const struct writer *writer);

/* Give the writer a free chunk: at once, or within a fraction of a second. */
bool chunk_take(struct writer *writer);
bool chunk_wait(struct writer *writer);

/* It is full, or its process ends. */
void chunk_give_back(struct writer *writer);

#endif /* ETRACE_PRELOAD_CHUNK_H */
