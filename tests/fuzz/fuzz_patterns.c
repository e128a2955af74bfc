// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target: lines of any bytes, the first one a text, the others patterns. Each pattern alone
 * and all of them together must say what fnmatch(3) says; this process is in the C locale. Run by
 * tests/fuzz/run.py.
 */
#include "matcher.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

#define LINES_MAX 64

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

struct input {
	uint8_t *text; /* of all lines, each with a NUL and the pad after it */
	const uint8_t *lines[LINES_MAX];
	size_t lens[LINES_MAX];
	uint32_t n;
};

/* Cut at newlines; a NUL byte cuts, too, for fnmatch(3) would stop there. */
static void cut(struct input *input, const uint8_t *data, size_t size)
{
	uint8_t *end = calloc(1, size + LINES_MAX * (ETRACE_GLOB_PAD + 1));
	size_t at = 0;

	if (!end)
		abort();
	input->text = end;
	for (input->n = 0; input->n < LINES_MAX && at <= size; input->n++) {
		size_t len = 0;

		while (at + len < size && data[at + len] && data[at + len] != '\n')
			len++;
		if (len)
			memcpy(end, data + at, len);
		input->lines[input->n] = end;
		input->lens[input->n] = len;
		end += len + ETRACE_GLOB_PAD + 1;
		at += len + 1;
	}
}

static void fail(const char *who, const struct input *input, uint32_t pattern)
{
	fprintf(stderr, "%s: text <%s>, pattern <%s>\n", who, (const char *)input->lines[0],
		(const char *)input->lines[pattern]);
	abort();
}

/* The text as one row of one argument, and as two rows of equal ones. */
static void match_as_rows(const struct globs *globs, const struct input *input, uint8_t *bits)
{
	const uint64_t strings[] = { 0, input->lens[0] };
	const uint64_t argv[] = { 0, 1, 2 };
	const uint32_t arguments[] = { 0, 0 };
	const struct rows rows = { strings, 1, input->lines[0], input->lens[0], argv, 2, arguments, 2 };

	if (match_rows(globs, &rows, bits))
		abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	uint8_t bits[2 * LINES_MAX / 8] = { 0 };
	struct input input;
	struct globs globs;
	int status;

	cut(&input, data, size);
	status = globs_init(&globs, input.lines + 1, input.lens + 1, input.n - 1);
	if (status) { /* of a pattern that costs too much */
		globs_deinit(&globs);
		free(input.text);
		if (status != -E2BIG && status != -ENAMETOOLONG)
			abort();
		return 0;
	}
	match_as_rows(&globs, &input, bits);
	for (uint32_t i = 0; i < globs.n; i++) {
		bool expected = !fnmatch((const char *)input.lines[i + 1],
					 (const char *)input.lines[0], 0);

		if (glob_match(&globs, &globs.globs[i], input.lines[0], input.lens[0]) != expected)
			fail("glob_match", &input, i + 1);
		if ((bits[i / 8] >> (7 - i % 8) & 1) != expected ||
		    (bits[(globs.n + 7) / 8 + i / 8] >> (7 - i % 8) & 1) != expected)
			fail("match_rows", &input, i + 1);
	}
	globs_deinit(&globs);
	free(input.text);
	return 0;
}
