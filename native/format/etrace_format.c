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
#define DECIMAL_MAX 20 /* digits of a u64, or of an s64 and its sign */
#define NAME_BYTES_MAX 16 /* of a tag or of an argument's name with its '=' */

/* The longest line without text: prefix, tag, arguments with a comma each, bar and line end. */
#define LINE_MAX                                                                                  \
	(ETRACE_PREFIX_MAX + NAME_BYTES_MAX +                                                      \
	 ETRACE_MAX_ARGS * (NAME_BYTES_MAX + DECIMAL_MAX + 1) + 2)

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

/*
 * Lines are made without looking at the room left: right in the buffer while a longest line fits,
 * else in `scratch`, from where end_line() copies what fits. It saves half of all instructions.
 */
static bool line_fits(const struct etrace_out *out)
{
	return out->len <= out->size && out->size - out->len >= LINE_MAX;
}

static char *begin_line(const struct etrace_out *out, char scratch[LINE_MAX])
{
	return line_fits(out) ? out->buf + out->len : scratch;
}

static void end_line(struct etrace_out *out, const char *line, const char *end)
{
	if (line_fits(out))
		out->len += (size_t)(end - line);
	else
		put(out, line, (size_t)(end - line));
}

/* Short texts: a call of memcpy() costs more than the copy. The two halves may overlap. */
static inline char *append(char *at, const char *text, size_t len)
{
	if (len >= 8 && len <= 16) {
		memcpy(at, text, 8);
		memcpy(at + len - 8, text + len - 8, 8);
	} else if (len >= 4 && len < 8) {
		memcpy(at, text, 4);
		memcpy(at + len - 4, text + len - 4, 4);
	} else if (len >= 2 && len < 4) {
		memcpy(at, text, 2);
		memcpy(at + len - 2, text + len - 2, 2);
	} else if (len == 1) {
		*at = *text;
	} else {
		memcpy(at, text, len);
	}
	return at + len;
}

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324252627282930"
				  "31323334353637383940414243444546474849505152535455565758596061"
				  "62636465666768697071727374757677787980818283848586878889909192"
				  "93949596979899";

static const u64 powers_of_ten[] = {
	0, /* so that zero has one digit */
	10,
	100,
	1000,
	10000,
	100000,
	1000000,
	10000000,
	100000000,
	1000000000,
	10000000000,
	100000000000,
	1000000000000,
	10000000000000,
	100000000000000,
	1000000000000000,
	10000000000000000,
	100000000000000000,
	1000000000000000000,
	10000000000000000000u,
};

/* 1233 / 4096 is just above log10(2): from bits to digits, one too few at most. */
static inline u32 count_digits(u64 value)
{
	u32 bits = 64 - (u32)__builtin_clzll(value | 1);
	u32 digits = bits * 1233 >> 12;

	return digits + (value >= powers_of_ten[digits]);
}

static char *append_long_decimal(char *at, u64 value)
{
	char *end = at + count_digits(value);
	char *digit = end;
	u32 last;

	while (value >= 10000) {
		u32 four = (u32)(value % 10000);

		digit -= 4;
		memcpy(digit, digit_pairs + 2 * (four / 100), 2);
		memcpy(digit + 2, digit_pairs + 2 * (four % 100), 2);
		value /= 10000;
	}
	for (last = (u32)value; last >= 10; last /= 100) {
		digit -= 2;
		memcpy(digit, digit_pairs + 2 * (last % 100), 2);
	}
	if (digit > at)
		*at = (char)('0' + last);
	return end;
}

static inline char *append_decimal(char *at, u64 value)
{
	if (value >= 100)
		return append_long_decimal(at, value);
	if (value >= 10) {
		memcpy(at, digit_pairs + 2 * value, 2);
		return at + 2;
	}
	*at = (char)('0' + value);
	return at + 1;
}

static char *append_number(char *at, s64 value, bool is_unsigned)
{
	if (is_unsigned || value >= 0)
		return append_decimal(at, (u64)value);
	*at++ = '-';
	return append_decimal(at, 0 - (u64)value);
}

/* The whole array is copied, in a few wide moves; what follows overwrites the rest of it. */
static inline char *append_prefix(char *at, const struct etrace_prefix *prefix)
{
	memcpy(at, prefix->text, ETRACE_PREFIX_MAX);
	return at + prefix->len;
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

void etrace_prefix_set_nsec(struct etrace_prefix *prefix, u32 nsec)
{
	char *at = append_decimal(prefix->text + prefix->nsec_at, nsec);

	*at++ = '!';
	prefix->len = (u32)(at - prefix->text);
}

/* At most 20 + 10 + 11 + 9 digits and 4 marks: always fits. */
void etrace_prefix_init(struct etrace_prefix *prefix, s64 upid, u32 cpu, u64 time_ns)
{
	char *at = prefix->text;
	u32 nsec;
	u64 sec = split_seconds(time_ns, &nsec);

	memset(prefix->text, 0, sizeof(prefix->text));
	at = append_number(at, upid, false);
	*at++ = ',';
	at = append_decimal(at, cpu);
	*at++ = ',';
	at = append_decimal(at, sec);
	*at++ = ',';
	prefix->nsec_at = (u32)(at - prefix->text);
	etrace_prefix_set_nsec(prefix, nsec);
}

/* The arguments; those whose string is absent are left out. */
static char *append_args(char *at, const struct etrace_event_def *def, const s64 *values,
			 const struct etrace_text *data)
{
	const struct etrace_arg_def *arg = def->args;
	const struct etrace_arg_def *end = arg + def->n_args;
	bool first = true;

	for (; arg < end; arg++) {
		if (arg->size_of >= 0 && !data[arg->size_of].text)
			continue;
		if (!first)
			*at++ = ',';
		first = false;
		at = append(at, arg->name, arg->name_len);
		if (arg->size_of >= 0)
			at = append_decimal(at, data[arg->size_of].len);
		else
			at = append_number(at, *values++, arg->is_unsigned);
	}
	return at;
}

void etrace_put_line(struct etrace_out *out, const struct etrace_prefix *prefix,
		     enum etrace_event event, const s64 *values, const struct etrace_text *data)
{
	const struct etrace_event_def *def = &etrace_event_defs[event];
	char scratch[LINE_MAX];
	char *line = begin_line(out, scratch);
	char *at = append(append_prefix(line, prefix), def->tag, def->tag_len);

	*at++ = '|';
	at = def->bare ? append_number(at, values[0], false) : append_args(at, def, values, data);
	*at++ = '\n';
	end_line(out, line, at);
}

/* Text that ends a line whose beginning was made at `line`, up to `at`. */
static void end_line_with(struct etrace_out *out, const char *line, char *at, const char *text,
			  size_t len)
{
	if (line_fits(out) && len < out->size - out->len - (size_t)(at - line)) {
		memcpy(at, text, len);
		at[len] = '\n';
		out->len += (size_t)(at - line) + len + LINE_END_BYTES;
		return;
	}
	end_line(out, line, at);
	put(out, text, len);
	put_char(out, '\n');
}

/* A line of a fixed beginning and `text`. */
static void put_plain_line(struct etrace_out *out, const struct etrace_prefix *prefix,
			   const char *tag, size_t tag_len, const char *text, size_t len)
{
	char scratch[LINE_MAX];
	char *line = begin_line(out, scratch);

	end_line_with(out, line, append(append_prefix(line, prefix), tag, tag_len), text, len);
}

/* The line that begins a string or a part of it. */
static void put_first_line(struct etrace_out *out, const struct etrace_prefix *prefix,
			   const struct etrace_data_def *def, bool numbered, u32 index,
			   const char *text, size_t len)
{
	char scratch[LINE_MAX];
	char *line = begin_line(out, scratch);
	char *at = append(append_prefix(line, prefix), def->tag, def->tag_len);

	if (numbered) {
		*at++ = '[';
		at = append_decimal(at, index);
		*at++ = ']';
	} else {
		*at++ = '|';
	}
	end_line_with(out, line, at, text, len);
}

void etrace_put_piece(struct etrace_out *out, const struct etrace_prefix *prefix,
		      enum etrace_data tag, u32 index, const char *text, size_t len,
		      struct etrace_part part)
{
	const struct etrace_data_def *def = &etrace_data_defs[tag];
	bool end_line = part.last && part.numbered && def->numbering == ETRACE_NUMBERING_STRING;
	bool continued = part.in_cont;
	const char *end = text + len;
	const char *newline = len ? memchr(text, '\n', len) : NULL;
	size_t line_len = newline ? (size_t)(newline - text) : len;

	if (part.in_cont)
		put_plain_line(out, prefix, LITERAL(ETRACE_CONT "|"), text, line_len);
	else
		put_first_line(out, prefix, def, part.numbered, index, text, line_len);
	while (newline) {
		text = newline + 1;
		newline = memchr(text, '\n', (size_t)(end - text));
		line_len = (size_t)((newline ? newline : end) - text);
		put_plain_line(out, prefix, LITERAL(ETRACE_CONT "|"), text, line_len);
		continued = true;
	}
	/* what closes a group of Cont lines; its bar is missing right before the end line */
	if (continued && !part.open)
		put_plain_line(out, prefix, LITERAL(ETRACE_CONT_END), "|", !end_line);
	if (end_line)
		put_plain_line(out, prefix, def->tag, def->tag_len, LITERAL(ETRACE_END_SUFFIX));
}

void etrace_put_part(struct etrace_out *out, const struct etrace_prefix *prefix,
		     enum etrace_data tag, u32 index, const char *text, size_t len, bool last)
{
	etrace_put_piece(out, prefix, tag, index, text, len,
			 (struct etrace_part){ .numbered = true, .last = last });
}

/* Cut `text` into parts; the number grows by `step` from part to part. */
static void put_parts(struct etrace_out *out, const struct etrace_prefix *prefix,
		      enum etrace_data tag, u32 index, u32 step, const char *text, size_t len)
{
	for (;;) {
		size_t part = etrace_part_len(len);

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
	else if (!len || !memchr(text, '\n', len)) /* nearly all strings */
		put_first_line(out, prefix, &etrace_data_defs[tag], false, 0, text, len);
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
	put_plain_line(out, prefix, LITERAL(ETRACE_END_OF_ARGS), LITERAL("|"));
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
