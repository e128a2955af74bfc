/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's side of the shared memory. */
#ifndef ETRACE_PRELOAD_RING_FILE_H
#define ETRACE_PRELOAD_RING_FILE_H

#include <stdbool.h>

#include "../ring.h"

/* A record in memory of the collector: `head` is checked, the strings lie behind it. */
struct event {
	struct ring_record head;
	uint64_t order; /* of arrival */
	uint32_t n_bytes;
	char bytes[];
};

/* Make the memory; `library` is what LD_PRELOAD has to name. */
void ring_create(const char *library, uint32_t wants);

/* Where the processes of the build find it. */
const char *ring_variable(void);

/* Hand on every record that was written so far; the receiver frees it. */
void ring_drain(void (*receive)(struct event *event));


/* Free the chunks of processes that have ended without a word. */
void ring_reclaim(void);

/* Nobody reads any more: the library stops to write. */
void ring_close(void);

/* Records that found no room, and what could not be understood. */
uint64_t ring_lost(void);
uint64_t ring_damaged(void);

#endif /* ETRACE_PRELOAD_RING_FILE_H */
