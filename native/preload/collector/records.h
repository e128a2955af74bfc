/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the library: out of the shared memory and from the socket, in the order of time. */
#ifndef ETRACE_PRELOAD_RECORDS_H
#define ETRACE_PRELOAD_RECORDS_H

#include <stdbool.h>
#include <string.h>

#include "etrace_format.h"
#include "preload/ring.h"

/* A record in memory of the collector: `head` is checked, the strings follow it. */
struct event {
	struct ring_record head;
	uint64_t order; /* of arrival */
	uint32_t n_bytes;
	char bytes[];
};

/* A record of the collector's own, with room for `n_bytes` of strings. */
struct event *event_make(enum ring_kind kind, pid_t pid, uint64_t time_ns, size_t n_bytes);
void event_add_text(struct event *event, const char *text, size_t len);

/* ---- the strings of a record, one after the other ---- */

struct strings {
	const char *at;
	const char *end;
};

static inline struct strings strings_of(const struct event *event)
{
	return (struct strings){ event->bytes, event->bytes + event->n_bytes };
}

/* The next one; empty when there is none (the record is damaged). */
static inline struct etrace_text strings_next(struct strings *strings)
{
	struct etrace_text text = { strings->at, 0 };
	uint32_t n;

	if ((size_t)(strings->end - strings->at) < sizeof(n)) {
		strings->at = strings->end;
		return text;
	}
	memcpy(&n, strings->at, sizeof(n));
	strings->at += sizeof(n);
	if (n > (size_t)(strings->end - strings->at))
		n = (uint32_t)(strings->end - strings->at);
	text = (struct etrace_text){ strings->at, n };
	strings->at += n;
	return text;
}

/* ---- ring_file.c: the shared memory ---- */

/* Make the memory; `library` is what LD_PRELOAD has to name. */
void ring_create(const char *library, uint32_t wants);

/* Where the processes of the build find it. */
const char *ring_variable(void);

/* Hand on every record that was written so far; the receiver frees it. */
void ring_drain(void (*receive)(struct event *event));

/* Free the chunks of processes that were killed. */
void ring_reclaim(void);

/* Nobody reads from now on: the library stops writing. */
void ring_close(void);

/* Records that found no room, and parts of the memory that made no sense. */
uint64_t ring_lost(void);
uint64_t ring_damaged(void);

/* ---- records.c: the order of time, and programs that cannot open the shared memory ---- */

void order_add(struct event *event);

/* The earliest record if its time is not after `limit`, else NULL. */
struct event *order_take(uint64_t limit);

/* Make the socket; `variable` is the value that the library gets. */
void outside_open(const char *variable);

/* To wait for; -1 when there is none. */
int outside_fd(void);

/* Hand on a record for each program that has said so. */
void outside_take(void (*receive)(struct event *event));

#endif /* ETRACE_PRELOAD_RECORDS_H */
