/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes COPIES of the trace on standard input as one build: copy k has every upid shifted by
 * k * 2^32 and every stamp by k times the length of the trace; its root is forked by that of the
 * first copy. Fast enough to feed the parser through a pipe.
 *
 *     repeat_trace COPIES <lua.nfsdb | etrace_parser - out.json
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UPID_SHIFT 32
#define NS_PER_SECOND 1000000000u

struct line {
	uint64_t upid, time, named; /* named: a upid in the data, 0 for none */
	int n_lead, n_cpu, n_tag, n_rest;
	const char *lead, *cpu, *tag, *rest;
};

static char *read_all(size_t *size)
{
	size_t cap = 1 << 20;
	char *text = malloc(cap + 1);

	*size = 0;
	while (text) {
		size_t n = fread(text + *size, 1, cap - *size, stdin);

		*size += n;
		if (!n)
			break;
		if (*size == cap)
			text = realloc(text, (cap *= 2) + 1);
	}
	if (text)
		text[*size] = 0;
	return text;
}

static void parse_line(struct line *line, char *at, char *end)
{
	static const char *const tags[] = { "SchedFork|pid=", "UPID|" };
	uint64_t seconds;
	char *text;

	memset(line, 0, sizeof(*line));
	line->lead = at;
	line->n_lead = strncmp(at, "0: ", 3) ? 0 : 3;
	at += line->n_lead;
	line->upid = strtoull(at, &at, 10);
	line->cpu = ++at;
	line->n_cpu = (int)strcspn(at, ",");
	seconds = strtoull(at + line->n_cpu + 1, &at, 10);
	line->time = seconds * NS_PER_SECOND + strtoull(at + 1, &at, 10);
	text = at + 1;
	for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++) {
		if (strncmp(text, tags[i], strlen(tags[i])))
			continue;
		line->tag = text;
		line->n_tag = (int)strlen(tags[i]);
		line->named = strtoull(text + line->n_tag, &text, 10);
	}
	line->rest = text;
	line->n_rest = (int)(end - text);
}

static uint64_t shift(uint64_t upid, uint64_t copy)
{
	return upid ? upid + (copy << UPID_SHIFT) : 0;
}

static void put_number(uint64_t number, char after)
{
	char digits[24], *at = digits + sizeof(digits);

	*--at = after;
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	fwrite_unlocked(at, 1, (size_t)(digits + sizeof(digits) - at), stdout);
}

static void put_head(const struct line *line, uint64_t upid, const char *cpu, int n_cpu, uint64_t time)
{
	fwrite_unlocked(line->lead, 1, (size_t)line->n_lead, stdout);
	put_number(upid, ',');
	fwrite_unlocked(cpu, 1, (size_t)n_cpu, stdout);
	putc_unlocked(',', stdout);
	put_number(time / NS_PER_SECOND, ',');
	put_number(time % NS_PER_SECOND, '!');
}

static void put_line(const struct line *line, uint64_t copy, uint64_t length)
{
	put_head(line, shift(line->upid, copy), line->cpu, line->n_cpu, line->time + copy * length);
	if (line->tag)
		printf("%.*s%" PRIu64, line->n_tag, line->tag, shift(line->named, copy));
	fwrite_unlocked(line->rest, 1, (size_t)line->n_rest + 1, stdout); /* with its newline */
}

int main(int argc, char **argv)
{
	uint64_t n_copies = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t first = UINT64_MAX, last = 0, length;
	struct line *lines;
	size_t size, n = 0;
	char *text = read_all(&size), *at, *end;

	if (!text || !(lines = malloc((size + 1) * sizeof(*lines) / 8)))
		return 1;
	at = text + strcspn(text, "\n") + 1; /* INITCWD= */
	fwrite(text, 1, (size_t)(at - text), stdout);
	for (; at < text + size && (end = strchr(at, '\n')); at = end + 1) {
		parse_line(&lines[n], at, end);
		first = lines[n].time < first ? lines[n].time : first;
		last = lines[n].time > last ? lines[n].time : last;
		n++;
	}
	length = last - first + NS_PER_SECOND;
	for (uint64_t copy = 0; copy < n_copies; copy++) {
		if (copy) {
			put_head(lines, lines[0].upid, "0", 1, lines[0].time + copy * length);
			printf("SchedFork|pid=%" PRIu64 "\n", shift(lines[0].upid, copy));
		}
		for (size_t i = 0; i < n; i++)
			put_line(&lines[i], copy, length);
	}
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
