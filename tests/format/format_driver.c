// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Calls the formatter as asked on standard input and answers on standard output, both binary (see
 * test_etrace_format.py). Every buffer is a malloc of exactly its size, so that AddressSanitizer sees
 * a read or write of one byte too many.
 */
#include <stdio.h>
#include <stdlib.h>

#include "etrace_format.h"

#define MAX_VALUES 8

enum operation {
	OP_PREFIX,
	OP_LINE,
	OP_EVENT,
	OP_STRING,
	OP_PART,
	OP_ITEM,
	OP_ENV,
	OP_END_OF_ARGS,
};

struct request {
	s64 upid;
	u64 time_ns;
	u64 size;
	u32 operation;
	u32 cpu;
	u32 tag;
	u32 index;
	u32 last;
	u32 n_newlines;
	u32 n_values;
	u32 n_texts;
};

struct answer {
	u64 len;
	u64 stored;
	u64 bound;
};

static bool read_bytes(void *to, size_t size)
{
	return fread(to, 1, size, stdin) == size;
}

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "format_driver: %s\n", what);
	exit(1);
}

static struct etrace_text read_text(void)
{
	struct etrace_text text = { NULL, 0 };
	s64 len;
	char *bytes;

	need(read_bytes(&len, sizeof(len)), "cut before a length");
	if (len < 0)
		return text;
	bytes = malloc((size_t)len);
	need(bytes && read_bytes(bytes, (size_t)len), "cut inside a string");
	text.text = bytes;
	text.len = (size_t)len;
	return text;
}

static void call(const struct request *ask, const struct etrace_prefix *prefix,
		 struct etrace_out *out, const s64 *values, const struct etrace_text *texts)
{
	switch ((enum operation)ask->operation) {
	case OP_PREFIX:
		need(out->size >= prefix->len, "no room for a prefix");
		for (u32 i = 0; i < prefix->len; i++)
			out->buf[out->len++] = prefix->text[i];
		break;
	case OP_LINE:
		etrace_put_line(out, prefix, (enum etrace_event)ask->tag, values, texts);
		break;
	case OP_EVENT:
		etrace_put_event(out, prefix, (enum etrace_event)ask->tag, values, texts);
		break;
	case OP_STRING:
		etrace_put_string(out, prefix, (enum etrace_data)ask->tag, texts->text, texts->len);
		break;
	case OP_PART:
		etrace_put_part(out, prefix, (enum etrace_data)ask->tag, ask->index, texts->text,
				texts->len, ask->last);
		break;
	case OP_ITEM:
		etrace_put_item(out, prefix, (enum etrace_data)ask->tag, ask->index, texts->text,
				texts->len);
		break;
	case OP_ENV:
		etrace_put_env(out, prefix, texts->text, texts->len);
		break;
	case OP_END_OF_ARGS:
		etrace_put_end_of_args(out, prefix);
		break;
	}
}

static void answer(const struct request *ask, const s64 *values, const struct etrace_text *texts)
{
	struct answer reply = { 0, 0, 0 };
	struct etrace_prefix prefix;
	struct etrace_out out;
	char *buf = malloc(ask->size);

	need(buf, "no memory");
	etrace_prefix_init(&prefix, ask->upid, ask->cpu, ask->time_ns);
	etrace_out_init(&out, buf, ask->size);
	call(ask, &prefix, &out, values, texts);
	reply.len = out.len;
	reply.stored = out.len < out.size ? out.len : out.size;
	if (ask->n_texts)
		reply.bound = etrace_string_bound(&prefix, texts->len, ask->n_newlines);
	need(fwrite(&reply, sizeof(reply), 1, stdout) == 1, "cannot write");
	need(fwrite(buf, 1, reply.stored, stdout) == reply.stored, "cannot write");
	free(buf);
}

int main(void)
{
	struct request ask;

	while (read_bytes(&ask, sizeof(ask))) {
		struct etrace_text texts[ETRACE_MAX_DATA] = { 0 };
		s64 values[MAX_VALUES] = { 0 };

		need(ask.n_values <= MAX_VALUES && ask.n_texts <= ETRACE_MAX_DATA, "too many");
		need(read_bytes(values, ask.n_values * sizeof(s64)), "cut inside values");
		for (u32 i = 0; i < ask.n_texts; i++)
			texts[i] = read_text();
		answer(&ask, values, texts);
		for (u32 i = 0; i < ask.n_texts; i++)
			free((void *)texts[i].text);
	}
	return 0;
}
