// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Events -> payloads of records, within their limits. Bounds are computed for the longest possible
 * prefix, because a record is cut before anybody formats it. Context: any.
 */
#define ETRACE_EVENTS_TABLES
#include "etrace_split.h"

/* Longest text of each kind; etrace_format.c prints them. */
#define NUMBER_MAX 20 /* a 64-bit number */
#define PREFIX_MAX 49 /* upid 20, cpu 5, seconds 11, nanoseconds 9, four marks */
#define TAG_MAX 3
#define ARG_NAME_MAX 14 /* "prognameisize=" */
#define PART_LINE_MAX (PREFIX_MAX + TAG_MAX + sizeof("[4294967295]\n"))
#define CONT_LINE_MAX (PREFIX_MAX + sizeof("Cont|\n"))
#define CONT_END_LINE_MAX (PREFIX_MAX + sizeof("Cont_end|\n"))
#define END_LINE_MAX (PREFIX_MAX + TAG_MAX + sizeof("_end\n"))
#define END_OF_ARGS_MAX (PREFIX_MAX + sizeof("End_of_args|\n"))

/* Newlines of one piece of a part: its text then fits into a record of its own. */
#define PIECE_NEWLINES_MAX 32

void etrace_whole_of(struct etrace_whole *whole, enum etrace_event event)
{
	*whole = etrace_whole_from(&etrace_event_defs[event]);
}

static size_t count_newlines(struct etrace_text string)
{
	const char *text = string.text;
	const char *end = text + string.len;
	size_t n = 0;

	for (; (text = etrace_find_byte(text, end, '\n')) < end; text++)
		n++;
	return n;
}

/* Bound of the event's own line. */
static size_t line_text(enum etrace_event event)
{
	const struct etrace_event_def *def = &etrace_event_defs[event];

	return PREFIX_MAX + def->tag_len + sizeof("|\n") + NUMBER_MAX +
	       def->n_args * (ARG_NAME_MAX + NUMBER_MAX + sizeof(","));
}

/* Bound of a whole string with `n_newlines`; each may be a group of Cont lines of its own. */
static size_t string_text(size_t len, size_t n_newlines)
{
	return len + (len / ETRACE_PART_BYTES + 1) * PART_LINE_MAX + END_LINE_MAX +
	       n_newlines * (CONT_LINE_MAX + CONT_END_LINE_MAX);
}

/* Of an event and its strings, whose newlines are counted or known to be absent. */
static size_t event_text(enum etrace_event event, const struct etrace_text *data, bool newlines)
{
	u32 n_data = etrace_event_defs[event].n_data;
	size_t text = line_text(event);
	u32 i;

	for (i = 0; i < n_data; i++)
		if (data[i].text)
			text += string_text(data[i].len,
					    newlines ? count_newlines(data[i]) : 0);
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

/* What was put there last is taken back. */
static void give_room_back(struct etrace_split *split, size_t bytes, size_t text)
{
	split->len -= bytes;
	split->text -= text;
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

static size_t text_piece_bytes(const struct piece_text *text)
{
	return sizeof(struct etrace_piece) + ETRACE_WORDS(text->len);
}

static size_t text_piece_bound(const struct piece_text *text)
{
	return text->len + PART_LINE_MAX + text->n_newlines * CONT_LINE_MAX + CONT_END_LINE_MAX +
	       END_LINE_MAX;
}

/* True when it has a newline. */
static bool put_text_piece(struct etrace_split *split, const struct piece_text *text)
{
	size_t bytes = text_piece_bytes(text);
	struct etrace_piece *piece =
		(struct etrace_piece *)take_room(split, bytes, text_piece_bound(text));

	etrace_clear_word((char *)piece + bytes - ETRACE_WORD); /* padding */
	*piece = (struct etrace_piece){
		.kind = ETRACE_PIECE_TEXT,
		.what = (u8)text->tag,
		.flags = text->flags,
		.bytes = (u32)text->len,
		.index = text->index,
		.size = (u32)bytes,
	};
	return etrace_copy_text((char *)(piece + 1), text->text, text->len);
}

/* Where a piece that begins at `text` is cut: the newline after PIECE_NEWLINES_MAX, or `end`. */
static const char *end_of_piece(const char *text, const char *end, size_t *n_newlines)
{
	const char *at = text;

	for (*n_newlines = 0;; ++*n_newlines) {
		const char *newline = etrace_find_byte(at, end, '\n');

		if (newline == end || *n_newlines == PIECE_NEWLINES_MAX)
			return newline;
		at = newline + 1;
	}
}

/* One part of at most ETRACE_PART_BYTES, in as many pieces as its newlines ask for. */
static void put_part_in_pieces(struct etrace_split *split, struct piece_text part)
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

/* Nearly all parts have no newline: that is seen when they have been copied. */
static void put_part(struct etrace_split *split, const struct piece_text *part)
{
	if (!put_text_piece(split, part))
		return;
	give_room_back(split, text_piece_bytes(part), text_piece_bound(part));
	put_part_in_pieces(split, *part);
}

/* All parts of `text`; each is `step` above the one before. Returns how many. */
static u32 put_parts(struct etrace_split *split, struct piece_text text, u32 step)
{
	size_t left = text.len;
	u32 n = 0;

	for (;;) {
		text.len = etrace_part_len(left);
		left -= text.len;
		if (!left)
			text.flags |= ETRACE_PIECE_END;
		put_part(split, &text);
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
		put_part(split, &piece);
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
	lengths = etrace_whole_values(&whole, at, ETRACE_PIECE_LINE_ONLY, event, values);
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

/* Line and strings as one piece of at most `text` bytes; false when the strings have a newline. */
static bool put_whole(struct etrace_split *split, const struct etrace_whole *whole, size_t text,
		      enum etrace_event event, const s64 *values, const struct etrace_text *data)
{
	char *at = take_room(split, whole->bytes, text);

	return etrace_whole_put(whole, at, event, values, data);
}

/* False: nothing was put, the text may be too long for one record. */
static bool put_whole_event(struct etrace_split *split, const struct etrace_whole *whole,
			    enum etrace_event event, const s64 *values,
			    const struct etrace_text *data)
{
	size_t text = event_text(event, data, false);

	if (put_whole(split, whole, text, event, values, data))
		return true;
	give_room_back(split, whole->bytes, text);
	text = event_text(event, data, true);
	if (text > ETRACE_RECORD_TEXT_MAX)
		return false;
	put_whole(split, whole, text, event, values, data);
	return true;
}

void etrace_split_event(struct etrace_split *split, enum etrace_event event, const s64 *values,
			const struct etrace_text *data)
{
	struct etrace_whole whole = etrace_whole_from(&etrace_event_defs[event]);

	if (etrace_whole_measure(&whole, data) &&
	    put_whole_event(split, &whole, event, values, data))
		return;
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
