/* SPDX-License-Identifier: GPL-2.0-only */
/* A record in the ring buffer, as the `format` file of the trace event describes it. */
#ifndef ETRACE_RECORD_ENTRY_H
#define ETRACE_RECORD_ENTRY_H

#include <linux/trace_events.h>

#include "etrace_record.h"

struct etrace_entry {
	struct trace_entry ent;
	struct etrace_record record;
	char payload[];
};

/* Of `record.payload`: where the payload begins, counted from the entry, and how long it is. */
#define ETRACE_PAYLOAD_AT(location) ((location) & 0xffff)
#define ETRACE_PAYLOAD_BYTES(location) ((location) >> 16)

/* How the trace event prints itself; before the first record. */
void etrace_text_init(void);

#endif /* ETRACE_RECORD_ENTRY_H */
