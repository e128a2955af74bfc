// SPDX-License-Identifier: Apache-2.0
/* Writers of a process, and the chunks that they fill. All of it may be interrupted by itself. */
#include "chunk.h"

#include "record.h"

#define MAX_WAITS 200 /* for a free chunk; each is a millisecond */

struct ring_chunk *chunk_of(const struct writer *writer)
{
	return &ring->chunks[writer->chunk - 1];
}

char *chunk_bytes(const struct writer *writer)
{
	return (char *)ring + RING_HEADER_BYTES + (writer->chunk - 1) * CHUNK_BYTES;
}

bool chunk_take(struct writer *writer)
{
	uint32_t n = __atomic_load_n(&ring->n_chunks, __ATOMIC_ACQUIRE);
	uint32_t i;

	for (i = 0; i < n && i < MAX_CHUNKS; i++) {
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

	for (i = 0; i < MAX_WAITS && record_is_on() && !state->waited_in_vain; i++) {
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
