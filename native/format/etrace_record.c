// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Records -> text lines; etrace_record.h says what a record is. Every length is checked against the
 * payload, whoever wrote it. Context: any.
 */
#include "etrace_record.h"

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

/* Bounds of the current piece: reading starts at `at` and stops at `end`. */
struct cursor {
	const char *at;
	const char *end;
};

static bool take(struct cursor *cursor, void *to, size_t bytes)
{
	if ((size_t)(cursor->end - cursor->at) < bytes)
		return false;
	memcpy(to, cursor->at, bytes);
	cursor->at += bytes;
	return true;
}

/* The `n` strings: their lengths, padding where these are an odd number, the bytes in one run. */
static bool take_texts(struct cursor *cursor, struct etrace_text *data, u32 n, bool line_only)
{
	const char *lengths = cursor->at;
	size_t lengths_bytes = (n + (n & 1)) * sizeof(u32);
	u32 i;

	if ((size_t)(cursor->end - cursor->at) < lengths_bytes)
		return false;
	cursor->at += lengths_bytes;
	for (i = 0; i < n; i++) {
		u32 len;

		memcpy(&len, lengths + i * sizeof(len), sizeof(len));
		data[i].len = len == ETRACE_ABSENT ? 0 : len;
		data[i].text = len == ETRACE_ABSENT ? NULL : cursor->at;
		if (line_only)
			continue;
		if ((size_t)(cursor->end - cursor->at) < data[i].len)
			return false;
		cursor->at += data[i].len;
	}
	return true;
}

/* Values that the piece does not give are zero. */
static bool take_values(struct cursor *cursor, s64 values[ETRACE_MAX_VALUES], u32 n)
{
	u32 i;

	if (n > ETRACE_MAX_VALUES || (size_t)(cursor->end - cursor->at) < n * sizeof(s64))
		return false;
	for (i = 0; i < ETRACE_MAX_VALUES; i++)
		values[i] = 0;
	for (i = 0; i < n; i++)
		memcpy(&values[i], cursor->at + i * sizeof(s64), sizeof(s64));
	cursor->at += n * sizeof(s64);
	return true;
}

static bool put_event_piece(struct etrace_out *out, const struct etrace_prefix *prefix,
			    const struct etrace_piece *piece, struct cursor body)
{
	enum etrace_event event = (enum etrace_event)piece->what;
	struct etrace_text data[ETRACE_MAX_DATA];
	s64 values[ETRACE_MAX_VALUES];
	bool line_only = piece->flags & ETRACE_PIECE_LINE_ONLY;

	if (piece->what >= ETRACE_N_EVENTS || !take_values(&body, values, piece->n_values) ||
	    !take_texts(&body, data, etrace_n_strings(event), line_only))
		return false;
	if (line_only)
		etrace_put_line(out, prefix, event, values, data);
	else
		etrace_put_event(out, prefix, event, values, data);
	return true;
}

static bool put_text_piece(struct etrace_out *out, const struct etrace_prefix *prefix,
			   const struct etrace_piece *piece, struct cursor body)
{
	if (piece->what >= ETRACE_N_DATA || (size_t)(body.end - body.at) < piece->bytes)
		return false;
	etrace_put_piece(out, prefix, (enum etrace_data)piece->what, piece->index, body.at,
			 piece->bytes,
			 (struct etrace_part){
				 .numbered = piece->flags & ETRACE_PIECE_NUMBERED,
				 .in_cont = piece->flags & ETRACE_PIECE_IN_CONT,
				 .open = piece->flags & ETRACE_PIECE_OPEN,
				 .last = piece->flags & ETRACE_PIECE_END,
			 });
	return true;
}

static bool put_piece(struct etrace_out *out, const struct etrace_prefix *prefix,
		      const struct etrace_piece *piece, struct cursor body)
{
	switch (piece->kind) {
	case ETRACE_PIECE_EVENT:
		return put_event_piece(out, prefix, piece, body);
	case ETRACE_PIECE_TEXT:
		return put_text_piece(out, prefix, piece, body);
	case ETRACE_PIECE_END_OF_ARGS:
		etrace_put_end_of_args(out, prefix);
		return true;
	default:
		return false;
	}
}

bool etrace_record_text(struct etrace_out *out, const struct etrace_prefix *prefix,
			const void *payload, size_t len)
{
	const char *at = payload;
	const char *end = at + len;

	while (at < end) {
		struct etrace_piece piece;
		struct cursor body = { at, end };

		if (!take(&body, &piece, sizeof(piece)) || piece.size < sizeof(piece) ||
		    piece.size > (size_t)(end - at))
			return false;
		body.end = at + piece.size;
		if (!put_piece(out, prefix, &piece, body))
			return false;
		at += piece.size;
	}
	return true;
}
