// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Event -> text lines: the only place that prints them. The rules are in docs/format.md, the tables
 * in etrace/events.h. Runs in user space and, at read time of the trace pipe, in the kernel; may be
 * called in atomic context.
 */
#define ETRACE_EVENTS_TABLES
#include "etrace_format.h"

#ifdef __KERNEL__
#include <linux/math64.h>
#include <linux/string.h>
#else
#include <string.h>
#endif

#define NSEC_PER_SECOND 1000000000u
#define DECIMAL_MAX 21 /* digits of a u64 and a sign */

#define LINE_END_BYTES 1
#define LITERAL(text) (text), (sizeof(text) - 1)

static void put(struct etrace_out *out, const char *text, size_t len)
{
	if (out->len <= out->size && len <= out->size - out->len)
		memcpy(out->buf + out->len, text, len);
	else if (out->len < out->size)
		memcpy(out->buf + out->len, text, out->size - out->len);
	out->len += len;
}

static void put_char(struct etrace_out *out, char c)
{
	if (out->len < out->size)
		out->buf[out->len] = c;
	out->len++;
}

/* Decimal digits of `value` at the end of `digits`; returns their start. */
static char *to_decimal(char digits[DECIMAL_MAX], u64 value, bool negative)
{
	char *at = digits + DECIMAL_MAX;

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	if (negative)
		*--at = '-';
	return at;
}

static void put_number(struct etrace_out *out, s64 value, bool is_unsigned)
{
	bool negative = !is_unsigned && value < 0;
	u64 magnitude = negative ? 0 - (u64)value : (u64)value;
	char digits[DECIMAL_MAX];
	char *start = to_decimal(digits, magnitude, negative);

	put(out, start, (size_t)(digits + DECIMAL_MAX - start));
}

static void start_line(struct etrace_out *out, const struct etrace_prefix *prefix,
		       const char *tag, size_t tag_len)
{
	put(out, prefix->text, prefix->len);
	put(out, tag, tag_len);
}

static u64 split_seconds(u64 time_ns, u32 *nsec)
{
#ifdef __KERNEL__
	return div_u64_rem(time_ns, NSEC_PER_SECOND, nsec);
#else
	*nsec = (u32)(time_ns % NSEC_PER_SECOND);
	return time_ns / NSEC_PER_SECOND;
#endif
}

void etrace_prefix_init(struct etrace_prefix *prefix, s64 upid, u32 cpu, u64 time_ns)
{
	struct etrace_out out;
	u32 nsec;
	u64 sec = split_seconds(time_ns, &nsec);

	etrace_out_init(&out, prefix->text, sizeof(prefix->text));
	put_number(&out, upid, false);
	put_char(&out, ',');
	put_number(&out, cpu, true);
	put_char(&out, ',');
	put_number(&out, (s64)sec, true);
	put_char(&out, ',');
	put_number(&out, nsec, true);
	put_char(&out, '!');
	prefix->len = (u32)out.len; /* at most 20 + 10 + 11 + 9 digits and 4 marks: always fits */
}

void etrace_put_line(struct etrace_out *out, const struct etrace_prefix *prefix,
		     enum etrace_event event, const s64 *values, const struct etrace_text *data)
{
	const struct etrace_event_def *def = &etrace_event_defs[event];
	bool first = true;
	u32 i;

	start_line(out, prefix, def->tag, def->tag_len);
	put_char(out, '|');
	if (def->bare)
		put_number(out, values[0], false);
	for (i = 0; i < def->n_args; i++) {
		const struct etrace_arg_def *arg = &def->args[i];

		if (arg->size_of >= 0 && !data[arg->size_of].text)
			continue;
		if (!first)
			put_char(out, ',');
		first = false;
		put(out, arg->name, arg->name_len);
		if (arg->size_of >= 0)
			put_number(out, (s64)data[arg->size_of].len, true);
		else
			put_number(out, *values++, arg->is_unsigned);
	}
	put_char(out, '\n');
}

/* What put_text() needs to know besides the text: how its group of Cont lines begins and ends. */
struct group {
	bool in_cont; /* the line before was of the same group */
	bool open; /* so is the line after */
	bool bar; /* the Cont_end that closes the group, if there is one, carries its bar */
};

/* `text` from right after its tag, or after `Cont|`, to the end of its group of Cont lines. */
static void put_text(struct etrace_out *out, const struct etrace_prefix *prefix, const char *text,
		     size_t len, struct group group)
{
	const char *end = text + len;
	bool continued = group.in_cont;

	for (;;) {
		const char *newline = len ? memchr(text, '\n', (size_t)(end - text)) : NULL;

		put(out, text, (size_t)((newline ? newline : end) - text));
		put_char(out, '\n');
		if (!newline)
			break;
		continued = true;
		start_line(out, prefix, LITERAL(ETRACE_CONT "|"));
		text = newline + 1;
	}
	if (continued && !group.open) {
		start_line(out, prefix, LITERAL(ETRACE_CONT_END));
		if (group.bar)
			put_char(out, '|');
		put_char(out, '\n');
	}
}

static void put_tag(struct etrace_out *out, const struct etrace_prefix *prefix,
		    const struct etrace_data_def *def, bool numbered, u32 index)
{
	start_line(out, prefix, def->tag, def->tag_len);
	if (!numbered) {
		put_char(out, '|');
		return;
	}
	put_char(out, '[');
	put_number(out, index, true);
	put_char(out, ']');
}

void etrace_put_piece(struct etrace_out *out, const struct etrace_prefix *prefix,
		      enum etrace_data tag, u32 index, const char *text, size_t len,
		      struct etrace_part part)
{
	const struct etrace_data_def *def = &etrace_data_defs[tag];
	bool end_line = part.last && part.numbered && def->numbering == ETRACE_NUMBERING_STRING;

	if (part.in_cont)
		start_line(out, prefix, LITERAL(ETRACE_CONT "|"));
	else
		put_tag(out, prefix, def, part.numbered, index);
	put_text(out, prefix, text, len,
		 (struct group){ .in_cont = part.in_cont, .open = part.open, .bar = !end_line });
	if (end_line) {
		start_line(out, prefix, def->tag, def->tag_len);
		put(out, LITERAL(ETRACE_END_SUFFIX "\n"));
	}
}

void etrace_put_part(struct etrace_out *out, const struct etrace_prefix *prefix,
		     enum etrace_data tag, u32 index, const char *text, size_t len, bool last)
{
	etrace_put_piece(out, prefix, tag, index, text, len,
			 (struct etrace_part){ .numbered = true, .last = last });
}

/* Cut `text` into parts; `step` is what the number grows by from part to part. */
static void put_parts(struct etrace_out *out, const struct etrace_prefix *prefix,
		      enum etrace_data tag, u32 index, u32 step, const char *text, size_t len)
{
	for (;;) {
		size_t part = len < ETRACE_PART_BYTES ? len : ETRACE_PART_BYTES;

		etrace_put_part(out, prefix, tag, index, text, part, part == len);
		if (part == len)
			return;
		index += step;
		text += part;
		len -= part;
	}
}

void etrace_put_string(struct etrace_out *out, const struct etrace_prefix *prefix,
		       enum etrace_data tag, const char *text, size_t len)
{
	if (len >= ETRACE_PART_BYTES)
		put_parts(out, prefix, tag, 0, 1, text, len);
	else
		etrace_put_piece(out, prefix, tag, 0, text, len, (struct etrace_part){});
}

void etrace_put_item(struct etrace_out *out, const struct etrace_prefix *prefix,
		     enum etrace_data tag, u32 index, const char *text, size_t len)
{
	put_parts(out, prefix, tag, index, 0, text, len);
}

void etrace_put_env(struct etrace_out *out, const struct etrace_prefix *prefix, const char *text,
		    size_t len)
{
	put_parts(out, prefix, ETRACE_DATA_ENV, 0, 1, text, len);
}

void etrace_put_end_of_args(struct etrace_out *out, const struct etrace_prefix *prefix)
{
	start_line(out, prefix, LITERAL(ETRACE_END_OF_ARGS "|\n"));
}

void etrace_put_event(struct etrace_out *out, const struct etrace_prefix *prefix,
		      enum etrace_event event, const s64 *values, const struct etrace_text *data)
{
	const struct etrace_event_def *def = &etrace_event_defs[event];
	u32 i;

	etrace_put_line(out, prefix, event, values, data);
	for (i = 0; i < def->n_data; i++)
		if (data[i].text)
			etrace_put_string(out, prefix, (enum etrace_data)def->data[i],
					  data[i].text, data[i].len);
}

u32 etrace_n_strings(enum etrace_event event)
{
	return etrace_event_defs[event].n_data;
}

size_t etrace_string_bound(const struct etrace_prefix *prefix, size_t len, size_t n_newlines)
{
	/* a part: its own line and a Cont_end; a newline: a Cont; the string: its _end line */
	size_t n_lines = 2 * (len / ETRACE_PART_BYTES + 1) + n_newlines + 1;
	size_t per_line = prefix->len + sizeof(ETRACE_CONT_END "|") + DECIMAL_MAX + LINE_END_BYTES;

	return len + n_lines * per_line;
}
