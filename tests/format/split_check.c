// SPDX-License-Identifier: Apache-2.0
/*
 * Random events through native/format/etrace_split.c: the text of the records one after the other
 * must be what the formatter prints of the events, and no record may be longer than it may. Built
 * with sanitizers by test_etrace_split.py; strings are in blocks of their exact length.
 *
 *	split_check SEED ROUNDS	prints `events records longest_payload longest_text` and exits 0
 */
#define ETRACE_EVENTS_TABLES
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etrace_split.h"

#define TEXT_BYTES (8u << 20)
#define GROUP_MAX 12

static u64 state;
static struct etrace_prefix prefix;
static char expected_buf[TEXT_BYTES], actual_buf[TEXT_BYTES];
static struct etrace_out expected, actual;
static struct {
	u64 events, records;
	size_t payload, text;
	bool expects_more;
} seen;

static void need(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "split_check: %s (event %llu, record %llu)\n", what,
		(unsigned long long)seen.events, (unsigned long long)seen.records);
	exit(1);
}

static u64 next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static size_t below(size_t limit)
{
	return next_random() % limit;
}

/* ---- what comes out ---- */

/* As a reader gets it: in a block of its own, aligned to four bytes only. */
static void read_record(const char *payload, size_t len)
{
	size_t before = actual.len;
	char *block = malloc(len + 4);

	need(block, "no memory");
	memcpy(block + 4, payload, len);
	need(etrace_record_text(&actual, &prefix, block + 4, len), "malformed record");
	free(block);
	need(len && len <= ETRACE_RECORD_BYTES_MAX && len % 8 == 0, "length of a payload");
	need(actual.len - before <= ETRACE_RECORD_TEXT_MAX, "text of a record too long");
	seen.records++;
	if (len > seen.payload)
		seen.payload = len;
	if (actual.len - before > seen.text)
		seen.text = actual.len - before;
}

static void write_record(struct etrace_split *split, bool more)
{
	seen.expects_more = more;
	read_record(split->buf, split->len);
}

static void compare(void)
{
	need(expected.len <= expected.size && actual.len <= actual.size, "buffers too small");
	need(!seen.expects_more, "the last record says that more follow");
	need(actual.len == expected.len, "another length of text");
	need(!memcmp(actual.buf, expected.buf, actual.len), "another text");
	expected.len = 0;
	actual.len = 0;
}

/* ---- what goes in ---- */

static size_t random_length(void)
{
	static const size_t near[] = { 900, 1800, 2600, 2700, 4095 };

	switch (below(6)) {
	case 0:
		return below(24);
	case 1:
		return below(120);
	case 2:
		return near[below(5)] - 10 + below(20);
	case 3:
		return below(2700);
	default:
		return below(64);
	}
}

static struct etrace_text random_text(size_t len)
{
	static const size_t one_in[] = { 1, 2, 20, 200, 100000, 100000 };
	size_t newlines = one_in[below(6)];
	char *text = malloc(len ? len : 1);
	size_t i;

	need(text, "no memory");
	for (i = 0; i < len; i++)
		text[i] = below(newlines) ? (char)(1 + below(255)) : '\n';
	return (struct etrace_text){ text, len };
}

struct event {
	enum etrace_event kind;
	s64 values[ETRACE_MAX_VALUES];
	struct etrace_text data[ETRACE_MAX_DATA];
};

static struct event random_event(void)
{
	static const s64 extremes[] = { 0, 3, INT64_MIN, INT64_MAX, -1 };
	struct event event = { .kind = (enum etrace_event)below(ETRACE_N_EVENTS) };
	u32 i;

	for (i = 0; i < ETRACE_MAX_VALUES; i++)
		event.values[i] = extremes[below(5)];
	for (i = 0; i < etrace_n_strings(event.kind); i++)
		if (below(8))
			event.data[i] = random_text(random_length());
	seen.events++;
	return event;
}

static void free_event(struct event *event)
{
	u32 i;

	for (i = 0; i < ETRACE_MAX_DATA; i++)
		free((void *)event->data[i].text);
}

/* Strings that together are about as long as an event may be to go out whole, without newlines. */
static struct event longest_event(void)
{
	struct event event = random_event();
	u32 n = etrace_n_strings(event.kind), i;
	size_t left = 2400 + below(700);

	for (i = 0; i < n; i++) {
		size_t len = i + 1 < n ? below(left) : left;
		char *text = realloc((void *)event.data[i].text, len + 1);

		need(text, "no memory");
		memset(text, 'x', len);
		event.data[i] = (struct etrace_text){ text, len };
		left -= len;
	}
	return event;
}

static bool has_newline(const struct event *event)
{
	u32 i;

	for (i = 0; i < ETRACE_MAX_DATA; i++)
		if (event->data[i].len && memchr(event->data[i].text, '\n', event->data[i].len))
			return true;
	return false;
}

/* The quick way, where it applies. */
static void check_whole(struct event event)
{
	struct etrace_whole whole;
	char *payload;
	bool short_enough;

	etrace_whole_of(&whole, event.kind);
	short_enough = etrace_whole_measure(&whole, event.data);
	payload = malloc(whole.bytes);
	need(payload, "no memory");
	if (short_enough &&
	    etrace_whole_put(&whole, payload, event.kind, event.values, event.data)) {
		need(!has_newline(&event), "a newline went unnoticed");
		etrace_put_event(&expected, &prefix, event.kind, event.values, event.data);
		read_record(payload, whole.bytes);
		compare();
	} else {
		need(short_enough ? has_newline(&event) :
			     event.data[0].len + event.data[1].len + event.data[2].len > 2000,
		     "a short event does not go whole");
	}
	free(payload);
	free_event(&event);
}

static void put_event(struct etrace_split *split)
{
	struct event event = random_event();

	etrace_put_event(&expected, &prefix, event.kind, event.values, event.data);
	etrace_split_event(split, event.kind, event.values, event.data);
	free_event(&event);
}

/* In one call, or with its first parts in a call of their own. */
static u32 put_item(struct etrace_split *split, enum etrace_data tag, u32 index,
		    struct etrace_text text)
{
	size_t parts = text.len / ETRACE_PART_BYTES;
	size_t first = parts ? below(parts + 1) * ETRACE_PART_BYTES : 0;
	u32 n = 0;

	if (first && first < text.len)
		n = etrace_split_item(split, tag, index, text.text, first);
	else
		first = 0;
	return n + etrace_split_item(split, tag, tag == ETRACE_DATA_ENV ? index + n : index,
				     text.text + first, text.len - first);
}

static void put_list(struct etrace_split *split)
{
	u32 n = (u32)below(40), i;

	for (i = 0; i < n; i++) {
		struct etrace_text text = random_text(below(20) ? random_length() : below(20000));

		etrace_put_item(&expected, &prefix, ETRACE_DATA_A, i, text.text, text.len);
		put_item(split, ETRACE_DATA_A, i, text);
		free((void *)text.text);
	}
	etrace_put_end_of_args(&expected, &prefix);
	etrace_split_end_of_args(split);
}

static void put_variable(struct etrace_split *split)
{
	struct etrace_text text = random_text(random_length());
	u32 parts = (u32)(text.len ? (text.len + ETRACE_PART_BYTES - 1) / ETRACE_PART_BYTES : 1);

	etrace_put_env(&expected, &prefix, text.text, text.len);
	need(put_item(split, ETRACE_DATA_ENV, 0, text) == parts, "number of parts");
	free((void *)text.text);
}

static void check_group(void)
{
	static struct etrace_split split;
	size_t n = 1 + below(GROUP_MAX);

	etrace_split_begin(&split, write_record);
	while (n--) {
		switch (below(8)) {
		case 0:
			put_list(&split);
			break;
		case 1:
			put_variable(&split);
			break;
		default:
			put_event(&split);
		}
	}
	etrace_split_end(&split);
	compare();
}

int main(int argc, char **argv)
{
	long rounds;

	need(argc == 3, "usage: split_check SEED ROUNDS");
	state = strtoull(argv[1], NULL, 10) * 2654435769u + 1;
	rounds = strtol(argv[2], NULL, 10);
	etrace_out_init(&expected, expected_buf, sizeof(expected_buf));
	etrace_out_init(&actual, actual_buf, sizeof(actual_buf));
	/* the longest there is: bounds must hold for it */
	etrace_prefix_init(&prefix, INT64_MIN, UINT16_MAX, UINT64_MAX);
	while (rounds--) {
		check_whole(random_event());
		check_whole(longest_event());
		check_group();
	}
	printf("%llu %llu %zu %zu\n", (unsigned long long)seen.events,
	       (unsigned long long)seen.records, seen.payload, seen.text);
	return 0;
}
