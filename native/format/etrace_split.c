// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Events -> payloads of records, within their limits. Bounds are computed for the longest possible
 * prefix, because a record is cut before anybody formats it. Context: any.
 */
#define ETRACE_EVENTS_TABLES
#include "etrace_split.h"

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

#define WORD 8u
#define ALIGNED(bytes) (((bytes) + WORD - 1) & ~(size_t)(WORD - 1))

/* Longest text of each kind; etrace_format.c prints them. */
#define NUMBER_MAX 20 /* a 64-bit number */
#define PREFIX_MAX 49 /* upid 20, cpu 5, seconds 11, nanoseconds 9, four marks */
#define TAG_MAX 3
#define PART_LINE_MAX (PREFIX_MAX + TAG_MAX + sizeof("[4294967295]\n"))
#define CONT_LINE_MAX (PREFIX_MAX + sizeof("Cont|\n"))
#define CONT_END_LINE_MAX (PREFIX_MAX + sizeof("Cont_end|\n"))
#define END_LINE_MAX (PREFIX_MAX + TAG_MAX + sizeof("_end\n"))
#define END_OF_ARGS_MAX (PREFIX_MAX + sizeof("End_of_args|\n"))

/*
 * Bytes of strings that an event may have to go out whole: with the longest line, three numbered
 * strings and no newline their text stays below ETRACE_RECORD_TEXT_MAX, and their payload below
 * ETRACE_RECORD_BYTES_MAX. tests/format/test_etrace_split.py shows it.
 */
#define WHOLE_STRINGS_MAX 2600
/* Newlines of one piece of a part: its text then fits into a record of its own. */
#define PIECE_NEWLINES_MAX 32

/* Non-zero when one of the eight bytes is a newline. */
static inline u64 newline_in(u64 word)
{
	const u64 ones = 0x0101010101010101u;
	u64 zero_where_newline = word ^ (ones * '\n');

	return (zero_where_newline - ones) & ~zero_where_newline & (ones << 7);
}

static inline u64 copy_word(char *to, const char *from)
{
	u64 word;

	memcpy(&word, from, WORD);
	memcpy(to, &word, WORD);
	return newline_in(word);
}

/*
 * Copy and look for newlines in one go; non-zero when there is one. Paths are short: this is less
 * work than memcpy() and memchr().
 */
static inline u64 copy_text(char *to, const char *from, size_t len)
{
	const char *last;
	char *last_to;
	u64 newlines = 0;

	if (len < WORD) {
		for (; len; len--) {
			newlines |= *from == '\n';
			*to++ = *from++;
		}
		return newlines;
	}
	last = from + len - WORD;
	last_to = to + len - WORD;
	for (; from < last; from += WORD, to += WORD)
		newlines |= copy_word(to, from);
	return newlines | copy_word(last_to, last);
}

bool etrace_whole_init(struct etrace_whole *whole, enum etrace_event event,
		       const struct etrace_text *data)
{
	const struct etrace_event_def *def = &etrace_event_defs[event];
	size_t strings = 0;
	u32 i;

	/* every string has its size among the arguments; the others are values */
	whole->n_values = (u8)(def->bare + def->n_args - def->n_data);
	whole->n_strings = def->n_data;
	whole->head = (u32)(sizeof(struct etrace_piece) + whole->n_values * sizeof(s64) +
			    ALIGNED(def->n_data * sizeof(u32)));
	for (i = 0; i < def->n_data; i++)
		if (data[i].text)
			strings += data[i].len;
	whole->bytes = whole->head + (u32)ALIGNED(strings);
	return strings <= WHOLE_STRINGS_MAX;
}

/* The piece's header and values; returns where the lengths of the strings go. */
static inline u32 *put_values(const struct etrace_whole *whole, char *at, u8 flags,
			      enum etrace_event event, const s64 *values)
{
	struct etrace_piece *piece = (struct etrace_piece *)at;
	u32 i;

	piece->kind = ETRACE_PIECE_EVENT;
	piece->what = (u8)event;
	piece->flags = flags;
	piece->n_values = whole->n_values;
	piece->bytes = 0;
	piece->index = 0;
	piece->size = whole->bytes;
	at += sizeof(*piece);
	for (i = 0; i < whole->n_values; i++, at += sizeof(s64)) /* 4-byte aligned only */
		memcpy(at, &values[i], sizeof(s64));
	return (u32 *)at;
}

/* Zero the last word of a piece before its bytes are copied: no stale memory in the padding. */
static inline void clear_padding(char *end)
{
	const u64 zero = 0;

	memcpy(end - WORD, &zero, WORD);
}

bool etrace_whole_put(const struct etrace_whole *whole, void *payload, enum etrace_event event,
		      const s64 *values, const struct etrace_text *data)
{
	char *at = (char *)payload + whole->head;
	u64 newlines = 0;
	u32 *lengths;
	u32 i;

	clear_padding((char *)payload + whole->bytes);
	lengths = put_values(whole, payload, 0, event, values);
	if (whole->n_strings & 1)
		lengths[whole->n_strings] = 0;
	for (i = 0; i < whole->n_strings; i++) {
		if (!data[i].text) {
			lengths[i] = ETRACE_ABSENT;
			continue;
		}
		lengths[i] = (u32)data[i].len;
		newlines |= copy_text(at, data[i].text, data[i].len);
		at += data[i].len;
	}
	((struct etrace_piece *)payload)->bytes = (u32)(at - (char *)payload) - whole->head;
	return !newlines;
}

static size_t count_newlines(const char *text, size_t len)
{
	const char *end = text + len;
	size_t n = 0;

	while (text < end && (text = memchr(text, '\n', (size_t)(end - text)))) {
		n++;
		text++;
	}
	return n;
}

/* Bound of the event's own line. */
static size_t line_text(enum etrace_event event)
{
	const struct etrace_event_def *def = &etrace_event_defs[event];
	size_t text = PREFIX_MAX + def->tag_len + sizeof("|\n") + NUMBER_MAX;
	u32 i;

	for (i = 0; i < def->n_args; i++)
		text += def->args[i].name_len + NUMBER_MAX + sizeof(",");
	return text;
}

/* Bound of a whole string with `n_newlines`; each may be a group of Cont lines of its own. */
static size_t string_text(size_t len, size_t n_newlines)
{
	return len + (len / ETRACE_PART_BYTES + 1) * PART_LINE_MAX + END_LINE_MAX +
	       n_newlines * (CONT_LINE_MAX + CONT_END_LINE_MAX);
}

static size_t event_text(enum etrace_event event, const struct etrace_text *data)
{
	u32 n_data = etrace_event_defs[event].n_data;
	size_t text = line_text(event);
	u32 i;

	for (i = 0; i < n_data; i++)
		if (data[i].text)
			text += string_text(data[i].len, count_newlines(data[i].text, data[i].len));
	return text;
}

/* Room for a piece, in a record of its own if need be. */
static char *take_room(struct etrace_split *split, size_t bytes, size_t text)
{
	char *at;

	if (split->len + bytes > ETRACE_RECORD_BYTES_MAX ||
	    split->text + text > ETRACE_RECORD_TEXT_MAX) {
		split->write(split, true);
		split->len = 0;
		split->text = 0;
	}
	at = split->buf + split->len;
	split->len += bytes;
	split->text += text;
	return at;
}

/* A part of a string, or what lies between two newlines of it. */
struct piece_text {
	enum etrace_data tag;
	u32 index;
	const char *text;
	size_t len;
	size_t n_newlines;
	u8 flags;
};

static void put_text_piece(struct etrace_split *split, const struct piece_text *text)
{
	size_t bytes = sizeof(struct etrace_piece) + ALIGNED(text->len);
	size_t bound = text->len + PART_LINE_MAX + text->n_newlines * CONT_LINE_MAX +
		       CONT_END_LINE_MAX + END_LINE_MAX;
	struct etrace_piece *piece = (struct etrace_piece *)take_room(split, bytes, bound);

	clear_padding((char *)piece + bytes);
	*piece = (struct etrace_piece){
		.kind = ETRACE_PIECE_TEXT,
		.what = (u8)text->tag,
		.flags = text->flags,
		.bytes = (u32)text->len,
		.index = text->index,
		.size = (u32)bytes,
	};
	memcpy(piece + 1, text->text, text->len);
}

/* Where a piece that begins at `text` is cut: the newline after PIECE_NEWLINES_MAX, or `end`. */
static const char *end_of_piece(const char *text, const char *end, size_t *n_newlines)
{
	const char *at = text;

	for (*n_newlines = 0;; ++*n_newlines) {
		const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;

		if (!newline || *n_newlines == PIECE_NEWLINES_MAX)
			return newline ? newline : end;
		at = newline + 1;
	}
}

/* One part of at most ETRACE_PART_BYTES, in as many pieces as its newlines ask for. */
static void put_part(struct etrace_split *split, struct piece_text part)
{
	const char *end = part.text + part.len;
	u8 last = part.flags & ETRACE_PIECE_END;

	part.flags &= (u8)~ETRACE_PIECE_END;
	for (;;) {
		const char *cut = end_of_piece(part.text, end, &part.n_newlines);

		part.len = (size_t)(cut - part.text);
		part.flags |= cut == end ? last : ETRACE_PIECE_OPEN;
		put_text_piece(split, &part);
		if (cut == end)
			return;
		part.text = cut + 1;
		part.flags = (u8)((part.flags & ~ETRACE_PIECE_OPEN) | ETRACE_PIECE_IN_CONT);
	}
}

/* All parts of `text`; each is `step` above the one before. Returns how many. */
static u32 put_parts(struct etrace_split *split, struct piece_text text, u32 step)
{
	size_t left = text.len;
	u32 n = 0;

	for (;;) {
		text.len = left < ETRACE_PART_BYTES ? left : ETRACE_PART_BYTES;
		left -= text.len;
		if (!left)
			text.flags |= ETRACE_PIECE_END;
		put_part(split, text);
		n++;
		if (!left)
			return n;
		text.text += text.len;
		text.index += step;
	}
}

static void put_string(struct etrace_split *split, enum etrace_data tag, struct etrace_text text)
{
	struct piece_text piece = { .tag = tag, .text = text.text, .len = text.len };

	if (text.len >= ETRACE_PART_BYTES) {
		piece.flags = ETRACE_PIECE_NUMBERED;
		put_parts(split, piece, 1);
	} else {
		put_part(split, piece);
	}
}

/* The line alone: the lengths of its strings, and no bytes. */
static void put_line(struct etrace_split *split, struct etrace_whole whole,
		     enum etrace_event event, const s64 *values, const struct etrace_text *data)
{
	char *at = take_room(split, whole.head, line_text(event));
	u32 *lengths;
	u32 i;

	whole.bytes = whole.head;
	clear_padding(at + whole.head);
	lengths = put_values(&whole, at, ETRACE_PIECE_LINE_ONLY, event, values);
	for (i = 0; i < whole.n_strings; i++)
		lengths[i] = data[i].text ? (u32)data[i].len : ETRACE_ABSENT;
}

static void put_strings(struct etrace_split *split, enum etrace_event event,
			const struct etrace_text *data)
{
	const struct etrace_event_def *def = &etrace_event_defs[event];
	u32 i;

	for (i = 0; i < def->n_data; i++)
		if (data[i].text)
			put_string(split, (enum etrace_data)def->data[i], data[i]);
}

void etrace_split_event(struct etrace_split *split, enum etrace_event event, const s64 *values,
			const struct etrace_text *data)
{
	struct etrace_whole whole;
	bool short_enough = etrace_whole_init(&whole, event, data);
	size_t text = short_enough ? event_text(event, data) : 0;

	if (short_enough && text <= ETRACE_RECORD_TEXT_MAX) {
		etrace_whole_put(&whole, take_room(split, whole.bytes, text), event, values, data);
		return;
	}
	put_line(split, whole, event, values, data);
	put_strings(split, event, data);
}

u32 etrace_split_item(struct etrace_split *split, enum etrace_data tag, u32 index,
		      const char *text, size_t len)
{
	struct piece_text piece = {
		.tag = tag,
		.index = index,
		.text = text,
		.len = len,
		.flags = ETRACE_PIECE_NUMBERED,
	};

	return put_parts(split, piece, etrace_data_defs[tag].numbering != ETRACE_NUMBERING_ITEM);
}

void etrace_split_end_of_args(struct etrace_split *split)
{
	struct etrace_piece *piece =
		(struct etrace_piece *)take_room(split, sizeof(*piece), END_OF_ARGS_MAX);

	*piece = (struct etrace_piece){
		.kind = ETRACE_PIECE_END_OF_ARGS,
		.size = sizeof(*piece),
	};
}

void etrace_split_end(struct etrace_split *split)
{
	if (split->len)
		split->write(split, false);
	split->len = 0;
	split->text = 0;
}
