/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Event -> text lines. Shared by the kernel module and every C program of etrace; docs/format.md
 * describes the lines. Context: any, atomic included. Nothing here sleeps, allocates, locks or
 * touches memory other than its arguments.
 */
#ifndef ETRACE_FORMAT_H
#define ETRACE_FORMAT_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
#endif

#include "etrace/events.h"

/*
 * Where text goes. Like snprintf: bytes beyond `size` are counted in `len` but not stored, so
 * `len > size`: the text was cut, and needs that much room. No null byte is added.
 */
struct etrace_out {
	char *buf;
	size_t size;
	size_t len;
};

/* A string that need not end with a null byte; `text == NULL` says that it is absent. */
struct etrace_text {
	const char *text;
	size_t len;
};

/* "upid,cpu,time,timen!", made once per event and put before each of its lines. */
#define ETRACE_PREFIX_MAX 64
struct etrace_prefix {
	u32 len;
	u32 nsec_at; /* where the digits of timen begin */
	char text[ETRACE_PREFIX_MAX];
};

static inline void etrace_out_init(struct etrace_out *out, char *buf, size_t size)
{
	out->buf = buf;
	out->size = size;
	out->len = 0;
}

/* How many of the `left` bytes of a string its next part takes. */
static inline size_t etrace_part_len(size_t left)
{
	if (left > ETRACE_PART_BYTES)
		return ETRACE_PART_BYTES;
	return left;
}

void etrace_prefix_init(struct etrace_prefix *prefix, s64 upid, u32 cpu, u64 time_ns);

/* Another event of the same task, CPU and second: a third of the work. `nsec` is below a second. */
void etrace_prefix_set_nsec(struct etrace_prefix *prefix, u32 nsec);

/*
 * The event's own line. `values` are the numbers that are not sizes, in the order of the comment
 * in enum etrace_event; `data` the strings; only their lengths are used here.
 */
void etrace_put_line(struct etrace_out *out, const struct etrace_prefix *prefix,
		     enum etrace_event event, const s64 *values, const struct etrace_text *data);

/* etrace_put_line() and then every string that is present. */
void etrace_put_event(struct etrace_out *out, const struct etrace_prefix *prefix,
		      enum etrace_event event, const s64 *values, const struct etrace_text *data);

/* One whole string: `TAG|text`, or numbered parts and `TAG_end`. */
void etrace_put_string(struct etrace_out *out, const struct etrace_prefix *prefix,
		       enum etrace_data tag, const char *text, size_t len);

/*
 * One numbered part of at most ETRACE_PART_BYTES, for callers that hold a string in pieces.
 * `last` also prints `TAG_end` where the tag has one.
 */
void etrace_put_part(struct etrace_out *out, const struct etrace_prefix *prefix,
		     enum etrace_data tag, u32 index, const char *text, size_t len, bool last);

/* The place of a piece of text in its string. */
struct etrace_part {
	bool numbered; /* `TAG[index]`, else `TAG|` */
	bool in_cont; /* begins right after a newline of the part: `Cont|` instead of the tag */
	bool open; /* the part continues in the next piece, after a newline that is in neither */
	bool last; /* the string ends here: `TAG_end` when numbered and the tag has one */
};

/*
 * Part of a part, for callers that cut at newlines because a part's text would be too long for
 * them. Printing the pieces of a string one after the other gives the lines of the whole.
 */
void etrace_put_piece(struct etrace_out *out, const struct etrace_prefix *prefix,
		      enum etrace_data tag, u32 index, const char *text, size_t len,
		      struct etrace_part part);

/* How many strings an event can have. */
u32 etrace_n_strings(enum etrace_event event);

/* One item of a list, such as argument `index` of A: numbered with `index` whatever its length. */
void etrace_put_item(struct etrace_out *out, const struct etrace_prefix *prefix,
		     enum etrace_data tag, u32 index, const char *text, size_t len);

/* One variable of the environment as numbered parts without an end line. */
void etrace_put_env(struct etrace_out *out, const struct etrace_prefix *prefix, const char *text,
		    size_t len);

/* `End_of_args|`. */
void etrace_put_end_of_args(struct etrace_out *out, const struct etrace_prefix *prefix);

/* Bytes that a string of `len` bytes with `n_newlines` newlines can need at most, any tag. */
size_t etrace_string_bound(const struct etrace_prefix *prefix, size_t len, size_t n_newlines);

#endif /* ETRACE_FORMAT_H */
