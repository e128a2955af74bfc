// SPDX-License-Identifier: Apache-2.0
/*
 * Joins the arguments of a row in a small buffer that stays in the cache, matches it, goes on. A row
 * with the same arguments as an earlier one takes its bits: a fork shows the argv of its parent.
 */
#include "matcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_BYTES 262144

struct work {
	const struct rows *rows;
	size_t row_bytes; /* of bits */
	uint8_t *bits;
	uint8_t *text; /* of one row */
	uint32_t *seen; /* rows + 1 by the hash of their arguments, or 0 */
	uint64_t seen_mask;
};

static bool ascends(const uint64_t *offsets, uint64_t n, uint64_t max)
{
	for (uint64_t i = 0; i < n; i++)
		if (offsets[i] > offsets[i + 1])
			return false;
	return offsets[n] <= max;
}

static bool is_valid(const struct rows *rows)
{
	uint32_t highest = 0;

	if (!ascends(rows->strings, rows->n_strings, rows->n_bytes) ||
	    !ascends(rows->argv, rows->n, rows->n_arguments) || rows->n > UINT32_MAX - 1)
		return false;
	for (uint64_t i = 0; i < rows->n_arguments; i++)
		highest = rows->arguments[i] > highest ? rows->arguments[i] : highest;
	return !rows->n_arguments || highest < rows->n_strings;
}

static uint64_t n_arguments(const struct rows *rows, uint64_t row)
{
	return rows->argv[row + 1] - rows->argv[row];
}

/* Bytes of the text of a row. */
static uint64_t text_len(const struct rows *rows, uint64_t row)
{
	uint64_t len = n_arguments(rows, row);

	for (uint64_t i = rows->argv[row]; i < rows->argv[row + 1]; i++) {
		uint32_t string = rows->arguments[i];

		len += rows->strings[string + 1] - rows->strings[string];
		if (len > MATCHER_TEXT_MAX)
			return UINT64_MAX;
	}
	return len ? len - 1 : 0;
}

static size_t join(const struct work *work, uint64_t row)
{
	const struct rows *rows = work->rows;
	uint8_t *end = work->text;

	for (uint64_t i = rows->argv[row]; i < rows->argv[row + 1]; i++) {
		uint32_t string = rows->arguments[i];
		size_t len = rows->strings[string + 1] - rows->strings[string];

		memcpy(end, rows->bytes + rows->strings[string], len);
		end += len;
		*end++ = ' ';
	}
	end -= end > work->text;
	memset(end, 0, ETRACE_GLOB_PAD);
	return (size_t)(end - work->text);
}

/* The longest text and the sum of all; -EOVERFLOW. */
static int measure(const struct rows *rows, uint64_t *longest, uint64_t *sum)
{
	*longest = 0;
	*sum = 0;
	for (uint64_t i = 0; i < rows->n; i++) {
		uint64_t len = text_len(rows, i);

		if (len == UINT64_MAX)
			return -EOVERFLOW;
		*longest = len > *longest ? len : *longest;
		*sum += len;
	}
	return 0;
}

static void count_sample(const struct work *work, uint64_t sum, struct gram_counts *counts)
{
	uint64_t step = sum / SAMPLE_BYTES + 1;

	for (uint64_t i = 0; i < work->rows->n; i += step)
		gram_counts_add(counts, work->text, join(work, i));
}

static uint64_t hash_row(const struct rows *rows, uint64_t row)
{
	uint64_t hash = n_arguments(rows, row);

	for (uint64_t i = rows->argv[row]; i < rows->argv[row + 1]; i++)
		hash = (hash ^ rows->arguments[i]) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

static bool same_arguments(const struct rows *rows, uint64_t a, uint64_t b)
{
	return n_arguments(rows, a) == n_arguments(rows, b) &&
	       !memcmp(rows->arguments + rows->argv[a], rows->arguments + rows->argv[b],
		       n_arguments(rows, a) * sizeof(*rows->arguments));
}

/* The first row with the same arguments, which may be this one. */
static uint64_t first_like(const struct work *work, uint64_t row)
{
	uint64_t i = hash_row(work->rows, row) & work->seen_mask;

	while (work->seen[i] && !same_arguments(work->rows, work->seen[i] - 1, row))
		i = (i + 1) & work->seen_mask;
	if (!work->seen[i])
		work->seen[i] = (uint32_t)row + 1;
	return work->seen[i] - 1;
}

static int match_all(const struct work *work, struct matcher *matcher)
{
	for (uint64_t i = 0; i < work->rows->n && glob_work(1); i++) {
		uint8_t *bits = work->bits + i * work->row_bytes;
		uint64_t like = first_like(work, i);

		if (like < i)
			memcpy(bits, work->bits + like * work->row_bytes, work->row_bytes);
		else
			matcher_match(matcher, work->text, join(work, i), bits);
	}
	return glob_pulse.stopped ? -EINTR : 0;
}

static int plan_and_match(const struct globs *globs, const struct work *work, uint64_t sum)
{
	struct gram_counts *counts = calloc(1, sizeof(*counts));
	struct matcher matcher;
	int status;

	if (!counts)
		return -ENOMEM;
	count_sample(work, sum, counts);
	status = matcher_init(&matcher, globs, counts);
	free(counts);
	if (!status)
		status = match_all(work, &matcher);
	matcher_deinit(&matcher);
	return status;
}

int match_rows(const struct globs *globs, const struct rows *rows, uint8_t *bits)
{
	struct work work = { rows, (globs->n + 7) / 8, bits, NULL, NULL, 1 };
	uint64_t longest, sum;
	int status = -ENOMEM;

	if (!is_valid(rows))
		return -EINVAL;
	if (!globs->n || !rows->n)
		return 0;
	if (measure(rows, &longest, &sum))
		return -EOVERFLOW;
	glob_begin();
	while (work.seen_mask < 2 * rows->n)
		work.seen_mask = 2 * work.seen_mask + 1;
	work.text = malloc(longest + 1 + ETRACE_GLOB_PAD);
	work.seen = calloc(work.seen_mask + 1, sizeof(*work.seen));
	if (work.text && work.seen)
		status = plan_and_match(globs, &work, sum);
	free(work.text);
	free(work.seen);
	return status;
}
