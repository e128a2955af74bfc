/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Events -> the payloads of records (etrace_record.h says what a record is), cut so that neither a
 * payload nor its text is longer than a record's may be. The text of the records one after the
 * other is what etrace_put_event() prints of the events. Used by the kernel module; in user space
 * by the tests. Context: any, atomic included.
 */
#ifndef ETRACE_SPLIT_H
#define ETRACE_SPLIT_H

#include "etrace_whole.h"

/* Of any event; of a known one etrace_whole_from() is quicker. */
void etrace_whole_of(struct etrace_whole *whole, enum etrace_event event);

/* Any number of events and lists that go out together; cut at newlines and part boundaries. */
struct etrace_split {
	/* `buf[0..len)` is the payload of a record; `more` says that another one follows. */
	void (*write)(struct etrace_split *split, bool more);
	size_t len;
	size_t text; /* bound of the bytes of text from buf, with any prefix */
	char buf[ETRACE_RECORD_BYTES_MAX];
};

static inline void etrace_split_begin(struct etrace_split *split,
				      void (*write)(struct etrace_split *split, bool more))
{
	split->write = write;
	split->len = 0;
	split->text = 0;
}

/* The event's line and its strings. */
void etrace_split_event(struct etrace_split *split, enum etrace_event event, const s64 *values,
			const struct etrace_text *data);
/*
 * Item `index` of a list (A), or a variable (Env: `index` is the number of its first part). A long
 * one may come in several calls, all but the last of a multiple of ETRACE_PART_BYTES and none
 * empty. Returns the number of parts.
 */
u32 etrace_split_item(struct etrace_split *split, enum etrace_data tag, u32 index,
		      const char *text, size_t len);
void etrace_split_end_of_args(struct etrace_split *split);
/* Write the rest. */
void etrace_split_end(struct etrace_split *split);

#endif /* ETRACE_SPLIT_H */
