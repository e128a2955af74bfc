/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * One event as the payload of one record, when that is certain to hold it: the quick way for nearly
 * all events. Inline: of a known event the compiler knows how many values and strings it has, which
 * is half of the work. etrace_record.h says what a record is. Context: any.
 */
#ifndef ETRACE_WHOLE_H
#define ETRACE_WHOLE_H

#include "etrace_record.h"
#include "etrace_words.h"

/*
 * Bytes of strings that an event may have to go out whole: with the longest line, three numbered
 * strings and no newline their text stays below ETRACE_RECORD_TEXT_MAX, and their payload below
 * ETRACE_RECORD_BYTES_MAX. tests/format/test_etrace_split.py shows it.
 */
#define ETRACE_WHOLE_STRINGS_MAX 2600

struct etrace_whole {
	u32 bytes; /* of the payload */
	u32 head; /* of it up to the strings */
	u32 strings; /* bytes of all strings */
	u8 n_values;
	u8 n_strings;
};

/* What an event has; the sizes that depend on its strings are those of one without. */
static __always_inline struct etrace_whole etrace_whole_from(const struct etrace_event_def *def)
{
	/* every string has its size among the arguments; the others are values */
	u8 n_values = (u8)(def->bare + def->n_args - def->n_data);
	u32 head = (u32)(sizeof(struct etrace_piece) + n_values * sizeof(s64) +
			 ETRACE_WORDS(def->n_data * sizeof(u32)));

	return (struct etrace_whole){
		.bytes = head,
		.head = head,
		.n_values = n_values,
		.n_strings = def->n_data,
	};
}

/* False when the strings are too long. */
static __always_inline bool etrace_whole_measure(struct etrace_whole *whole,
						 const struct etrace_text *data)
{
	size_t strings = 0;
	u32 i;

	for (i = 0; i < whole->n_strings; i++)
		if (data[i].text)
			strings += data[i].len;
	whole->strings = (u32)strings;
	whole->bytes = whole->head + (u32)ETRACE_WORDS(strings);
	return strings <= ETRACE_WHOLE_STRINGS_MAX;
}

/* The piece's header and values; returns where the lengths of the strings go. */
static __always_inline u32 *etrace_whole_values(const struct etrace_whole *whole, char *at,
						u8 flags, enum etrace_event event,
						const s64 *values)
{
	struct etrace_piece *piece = (struct etrace_piece *)at;
	u32 i;

	*piece = (struct etrace_piece){
		.kind = ETRACE_PIECE_EVENT,
		.what = (u8)event,
		.flags = flags,
		.n_values = whole->n_values,
		.bytes = flags & ETRACE_PIECE_LINE_ONLY ? 0 : whole->strings,
		.size = whole->bytes,
	};
	at += sizeof(*piece);
	for (i = 0; i < whole->n_values; i++, at += sizeof(s64)) /* 4-byte aligned only */
		memcpy(at, &values[i], sizeof(s64));
	if (whole->n_strings & 1)
		((u32 *)at)[whole->n_strings] = 0;
	return (u32 *)at;
}

/*
 * Fill `payload` after etrace_whole_measure(); false when a string has a newline: then its text may
 * be too long.
 */
static __always_inline bool etrace_whole_put(const struct etrace_whole *whole, char *payload,
					     enum etrace_event event, const s64 *values,
					     const struct etrace_text *data)
{
	char *at = payload + whole->head;
	u64 newlines = 0;
	u32 *lengths;
	u32 i;

	if (whole->n_strings)
		etrace_clear_word(payload + whole->bytes - ETRACE_WORD); /* padding */
	lengths = etrace_whole_values(whole, payload, 0, event, values);
	for (i = 0; i < whole->n_strings; i++) {
		if (!data[i].text) {
			lengths[i] = ETRACE_ABSENT;
			continue;
		}
		lengths[i] = (u32)data[i].len;
		newlines |= etrace_copy_text(at, data[i].text, data[i].len);
		at += data[i].len;
	}
	return !newlines;
}

#endif /* ETRACE_WHOLE_H */
