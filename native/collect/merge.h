/* SPDX-License-Identifier: Apache-2.0 */
/* Records of all CPUs -> whole events in the order of their time. */
#ifndef ETRACE_COLLECT_MERGE_H
#define ETRACE_COLLECT_MERGE_H

#include "etrace_record.h"

struct page;

/* A record on a page that it keeps in use. */
struct held_record {
	u64 time_ns;
	s64 upid;
	struct page *page;
	const char *payload;
	u16 payload_bytes;
	u16 cpu;
	u16 flags;
};

#define TIME_MAX UINT64_MAX

/* How far events may go out. */
struct horizon {
	u64 before_ns; /* only events before this instant: others may still come in between */
	u64 patience_ns; /* an incomplete event after this instant holds back those that follow it */
};

void merge_init(size_t n_cpus);

/* A record of CPU number `idx`, in the order of its buffer. The caller has put the page to use. */
void merge_add(size_t idx, const struct held_record *record);

/*
 * Call emit_event() for each event within the horizon and free its records. An event of several
 * records goes out when it is complete, or is counted when that has become impossible.
 */
void merge_emit(struct horizon horizon);

/* Bytes of what is held besides the pages. */
u64 merge_bytes(void);

/* The part of it that is for the records of CPU number `idx`, those that are in order. */
u64 merge_cpu_bytes(size_t idx);

/* Give up all events that wait for further records; returns how many there were. */
u64 merge_give_up(void);

/* Of emit.c: `n` records of one event in their order. */
void emit_event(const struct held_record *records, size_t n);

#endif /* ETRACE_COLLECT_MERGE_H */
