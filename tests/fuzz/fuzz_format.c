// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * libFuzzer target: any event goes through the formatter and back through the small reader below; the
 * same numbers and strings must come out, within etrace_string_bound(), and a buffer of every
 * smaller size must get the first bytes of the same text. Run by tests/fuzz/run.py.
 */
#define ETRACE_EVENTS_TABLES
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etrace_format.h"

#define MAX_TEXT 2000
#define CHUNK_MAX 64

#define REQUIRE(condition)                                                            \
	do {                                                                          \
		if (!(condition)) {                                                   \
			fprintf(stderr, "fuzz_format: not so: %s\n", #condition);     \
			abort();                                                      \
		}                                                                     \
	} while (0)

/* The fuzzer's bytes, taken from the front; zeros when they are used up. */
struct source {
	const unsigned char *at;
	size_t left;
};

static u64 take(struct source *from, size_t size)
{
	u64 value = 0;

	for (; size && from->left; size--, from->left--)
		value = value << 8 | *from->at++;
	return value;
}

/* A string of up to MAX_TEXT bytes that repeats a short chunk of the input; often absent. */
static struct etrace_text take_text(struct source *from, bool may_be_absent)
{
	struct etrace_text text = { NULL, 0 };
	size_t chunk_len = take(from, 1) % (CHUNK_MAX + 1);
	size_t len = take(from, 2) % (MAX_TEXT + 1);
	char *bytes;

	if (may_be_absent && chunk_len == 0)
		return text;
	chunk_len = chunk_len < from->left ? chunk_len : from->left;
	bytes = malloc(len);
	REQUIRE(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = chunk_len ? (char)from->at[i % chunk_len] : '\n';
	from->at += chunk_len;
	from->left -= chunk_len;
	text.text = bytes;
	text.len = len;
	return text;
}

/* What one input asks for. */
struct job {
	struct etrace_prefix prefix;
	enum etrace_event event;
	s64 values[ETRACE_MAX_VALUES];
	struct etrace_text data[ETRACE_MAX_DATA];
	u32 n_items;
	struct etrace_text items[4];
	struct etrace_text env;
};

static void job_init(struct job *job, struct source *from)
{
	const struct etrace_event_def *def;

	memset(job, 0, sizeof(*job));
	job->event = (enum etrace_event)(take(from, 1) % ETRACE_N_EVENTS);
	def = &etrace_event_defs[job->event];
	etrace_prefix_init(&job->prefix, (s64)(take(from, 8) >> 1), (u32)take(from, 4),
			   take(from, 8));
	for (size_t i = 0; i < ETRACE_MAX_VALUES; i++)
		job->values[i] = (s64)take(from, 8);
	for (u32 i = 0; i < def->n_data; i++)
		job->data[i] = take_text(from, true);
	job->n_items = (u32)(take(from, 1) % 5);
	for (u32 i = 0; i < job->n_items; i++)
		job->items[i] = take_text(from, false);
	job->env = take_text(from, false);
}

static void job_deinit(struct job *job)
{
	for (size_t i = 0; i < ETRACE_MAX_DATA; i++)
		free((void *)job->data[i].text);
	for (u32 i = 0; i < job->n_items; i++)
		free((void *)job->items[i].text);
	free((void *)job->env.text);
}

static void job_print(const struct job *job, struct etrace_out *out)
{
	etrace_put_event(out, &job->prefix, job->event, job->values, job->data);
	for (u32 i = 0; i < job->n_items; i++)
		etrace_put_item(out, &job->prefix, ETRACE_DATA_A, i, job->items[i].text,
				job->items[i].len);
	etrace_put_end_of_args(out, &job->prefix);
	etrace_put_env(out, &job->prefix, job->env.text, job->env.len);
}

/* The reader: lines that are left, each checked for its prefix. */
struct reader {
	const struct etrace_prefix *prefix;
	const char *at;
	const char *end;
};

static bool starts_with(const struct reader *in, const char *start, size_t len)
{
	return (size_t)(in->end - in->at) >= in->prefix->len + len &&
	       !memcmp(in->at, in->prefix->text, in->prefix->len) &&
	       !memcmp(in->at + in->prefix->len, start, len);
}

/* Step over the prefix and `start`; the rest of the line is what take_rest() gives. */
static bool take_start(struct reader *in, const char *start)
{
	if (!starts_with(in, start, strlen(start)))
		return false;
	in->at += in->prefix->len + strlen(start);
	return true;
}

static struct etrace_text take_rest(struct reader *in)
{
	const char *newline = memchr(in->at, '\n', (size_t)(in->end - in->at));
	struct etrace_text rest = { in->at, 0 };

	REQUIRE(newline);
	rest.len = (size_t)(newline - in->at);
	in->at = newline + 1;
	return rest;
}

static void take_line(struct reader *in, const char *line)
{
	REQUIRE(take_start(in, line));
	REQUIRE(take_rest(in).len == 0);
}

/* `len` bytes of `text` as one part: its first line is begun, Cont lines may follow. */
static void take_part(struct reader *in, const char *text, size_t len, bool before_end)
{
	bool continued = false;

	for (;;) {
		struct etrace_text rest = take_rest(in);

		REQUIRE(rest.len <= len && !memcmp(rest.text, text, rest.len));
		text += rest.len;
		len -= rest.len;
		if (!len)
			break;
		REQUIRE(*text == '\n');
		text++;
		len--;
		continued = true;
		REQUIRE(take_start(in, "Cont|"));
	}
	if (continued)
		take_line(in, before_end ? "Cont_end" : "Cont_end|");
}

/* Parts of `text` whose numbers begin with `index` and grow by `step`. */
static void take_parts(struct reader *in, const char *tag, u32 index, u32 step,
		       struct etrace_text text, bool has_end)
{
	char start[32];
	size_t at = 0;

	do {
		size_t part = text.len - at < 900 ? text.len - at : 900;

		snprintf(start, sizeof(start), "%s[%u]", tag, index);
		REQUIRE(take_start(in, start));
		take_part(in, text.text + at, part, has_end && at + part == text.len);
		at += part;
		index += step;
	} while (at < text.len);
}

static void take_string(struct reader *in, const char *tag, struct etrace_text text)
{
	char start[32];

	if (text.len < 900) {
		snprintf(start, sizeof(start), "%s|", tag);
		REQUIRE(take_start(in, start));
		take_part(in, text.text, text.len, false);
		return;
	}
	take_parts(in, tag, 0, 1, text, true);
	snprintf(start, sizeof(start), "%s_end", tag);
	take_line(in, start);
}

/* The event's own line as printf would write it. */
static void take_event_line(struct reader *in, const struct job *job)
{
	const struct etrace_event_def *def = &etrace_event_defs[job->event];
	const s64 *value = job->values;
	const char *comma = "";
	char line[512];
	int at = snprintf(line, sizeof(line), "%s|", def->tag);

	if (def->bare)
		at += snprintf(line + at, sizeof(line) - (size_t)at, "%lld", (long long)*value);
	for (u32 i = 0; i < def->n_args; i++) {
		const struct etrace_arg_def *arg = &def->args[i];
		bool is_size = arg->size_of >= 0;
		u64 number = is_size ? job->data[arg->size_of].len : 0;

		if (is_size && !job->data[arg->size_of].text)
			continue;
		if (!is_size)
			number = (u64)*value++;
		at += snprintf(line + at, sizeof(line) - (size_t)at,
			       arg->is_unsigned ? "%s%s%llu" : "%s%s%lld", comma, arg->name,
			       (unsigned long long)number);
		comma = ",";
	}
	take_line(in, line);
}

static void read_back(const struct job *job, const char *text, size_t len)
{
	const struct etrace_event_def *def = &etrace_event_defs[job->event];
	struct reader in = { &job->prefix, text, text + len };

	take_event_line(&in, job);
	for (u32 i = 0; i < def->n_data; i++)
		if (job->data[i].text)
			take_string(&in, etrace_data_defs[def->data[i]].tag, job->data[i]);
	for (u32 i = 0; i < job->n_items; i++)
		take_parts(&in, "A", i, 0, job->items[i], false);
	take_line(&in, "End_of_args|");
	take_parts(&in, "Env", 0, 1, job->env, false);
	REQUIRE(in.at == in.end);
}

static void check_bound(const struct job *job)
{
	struct etrace_out out;
	size_t n_newlines = 0;

	for (size_t i = 0; i < job->env.len; i++)
		n_newlines += job->env.text[i] == '\n';
	etrace_out_init(&out, NULL, 0);
	etrace_put_string(&out, &job->prefix, ETRACE_DATA_FN, job->env.text, job->env.len);
	REQUIRE(out.len <= etrace_string_bound(&job->prefix, job->env.len, n_newlines));
	etrace_out_init(&out, NULL, 0);
	etrace_put_env(&out, &job->prefix, job->env.text, job->env.len);
	REQUIRE(out.len <= etrace_string_bound(&job->prefix, job->env.len, n_newlines));
}

/* A buffer of `size` bytes gets the first `size` bytes of `whole`. */
static void check_cut(const struct job *job, const char *whole, size_t len, size_t size)
{
	char *buf = malloc(size);
	struct etrace_out out;

	REQUIRE(buf);
	etrace_out_init(&out, buf, size);
	job_print(job, &out);
	REQUIRE(out.len == len && !memcmp(buf, whole, size));
	free(buf);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct source from = { data, size };
	struct etrace_out out;
	struct job job;
	size_t len, cut;
	char *buf;

	cut = take(&from, 2);
	job_init(&job, &from);
	etrace_out_init(&out, NULL, 0);
	job_print(&job, &out);
	len = out.len;
	buf = malloc(len);
	REQUIRE(buf);
	etrace_out_init(&out, buf, len);
	job_print(&job, &out);
	REQUIRE(out.len == len);
	read_back(&job, buf, len);
	check_cut(&job, buf, len, cut % (len + 1));
	check_bound(&job);
	free(buf);
	job_deinit(&job);
	return 0;
}
