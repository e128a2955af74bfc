// SPDX-License-Identifier: Apache-2.0
/*
 * Environments of the executed programs -> UPID and Env groups. Those of make and ninja are always
 * kept, without their secrets unless environments were asked for. Each distinct variable is kept once,
 * each distinct environment once as a list of variables, so that an execution costs 16 bytes
 * where make gives the same environment to all its commands.
 *
 * The groups are written at the end of the trace. When all this takes KEPT_BYTES, as it does only
 * where programs make variables of their own, they are written at once and forgotten: the order of
 * groups means nothing, so nothing is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "capture/interned.h"
#include "capture/options.h"
#include "capture/program.h"
#include "capture/trace.h"
#include "etrace_builders.h"
#include "etrace_secret.h"

#define KEPT_BYTES (64 << 20)

/* The variables of a block: an environment, by its number in `blocks`, and whose it was. */
struct start {
	s64 upid;
	u32 block;
};

static struct interned variables;
static struct interned blocks; /* numbers of variables, u32 */
static struct start *starts;
static size_t n_starts;
static size_t max_starts;

static bool is_full(void)
{
	return interned_size(&variables) + interned_size(&blocks) +
		       max_starts * sizeof(*starts) > KEPT_BYTES;
}

static void add_start(s64 upid, u32 block)
{
	if (n_starts && starts[n_starts - 1].upid == upid && starts[n_starts - 1].block == block)
		return;
	if (n_starts == max_starts) {
		max_starts = max_starts ? 2 * max_starts : 1024;
		starts = must_realloc(starts, max_starts * sizeof(*starts));
	}
	starts[n_starts++] = (struct start){ upid, block };
}

bool environment_is_wanted(const struct etrace_text *program)
{
	return options.environment || etrace_is_builder(program->text, program->len);
}

static u32 add_variable(const struct etrace_text *variable)
{
	char hidden[ETRACE_HIDDEN_MAX];
	size_t len = options.environment ? 0 : etrace_hide(hidden, variable->text, variable->len, true);

	return len ? interned_add(&variables, hidden, len) :
		     interned_add(&variables, variable->text, variable->len);
}

void environment_add(s64 upid, const struct etrace_text *texts, size_t n)
{
	static u32 *numbers;
	static size_t max_numbers;
	size_t i;

	if (is_full())
		environment_put();
	if (n > max_numbers) {
		max_numbers = n;
		numbers = must_realloc(numbers, n * sizeof(*numbers));
	}
	for (i = 0; i < n; i++)
		numbers[i] = add_variable(&texts[i]);
	add_start(upid, interned_add(&blocks, numbers, n * sizeof(*numbers)));
}

/* Lists of numbers by key: those of key k are numbers[start[k]] to numbers[start[k + 1]]. */
struct lists {
	size_t *start;
	u32 *numbers;
};

/* First count, by lists_count(), then lists_end_counts(), then add, with the same pairs. */
static struct lists lists_begin(size_t n_keys)
{
	struct lists lists = { must_alloc((n_keys + 2) * sizeof(size_t)), NULL };

	memset(lists.start, 0, (n_keys + 2) * sizeof(size_t));
	return lists;
}

static void lists_count(struct lists *lists, u32 key)
{
	lists->start[key + 2]++;
}

static void lists_end_counts(struct lists *lists, size_t n_keys)
{
	size_t i;

	for (i = 2; i < n_keys + 2; i++)
		lists->start[i] += lists->start[i - 1];
	lists->numbers = must_alloc((lists->start[n_keys + 1] + 1) * sizeof(*lists->numbers));
}

static void lists_add(struct lists *lists, u32 key, u32 number)
{
	lists->numbers[lists->start[key + 1]++] = number;
}

static void lists_free(struct lists *lists)
{
	free(lists->start);
	free(lists->numbers);
}

/* For each variable the blocks that have it. */
static struct lists find_users(void)
{
	struct lists users = lists_begin(variables.n);
	bool is_counted = false;
	size_t len;
	size_t i;
	u32 block;

	do {
		for (block = 0; block < blocks.n; block++) {
			const u32 *numbers = interned_at(&blocks, block, &len);

			for (i = 0; i < len / sizeof(*numbers); i++) {
				if (is_counted)
					lists_add(&users, numbers[i], block);
				else
					lists_count(&users, numbers[i]);
			}
		}
		if (!is_counted)
			lists_end_counts(&users, variables.n);
		is_counted = !is_counted;
	} while (is_counted);
	return users;
}

/* For each block its starts. */
static struct lists find_starts(void)
{
	struct lists found = lists_begin(blocks.n);
	size_t i;

	for (i = 0; i < n_starts; i++)
		lists_count(&found, starts[i].block);
	lists_end_counts(&found, blocks.n);
	for (i = 0; i < n_starts; i++)
		lists_add(&found, starts[i].block, (u32)i);
	return found;
}

static void put_variable(const struct etrace_prefix *prefix, u32 number)
{
	size_t len;
	const char *text = interned_at(&variables, number, &len);

	do {
		trace_begin();
		etrace_put_env(trace_piece(), prefix, text, len);
	} while (!trace_end());
}

static void put_group(u32 variable, const struct lists *users, const struct lists *starts_of)
{
	struct etrace_prefix prefix;
	size_t i;
	size_t k;

	etrace_prefix_init(&prefix, 0, 0, monotonic_ns());
	for (i = users->start[variable]; i < users->start[variable + 1]; i++) {
		u32 block = users->numbers[i];

		for (k = starts_of->start[block]; k < starts_of->start[block + 1]; k++)
			trace_put(&prefix, ETRACE_EV_UPID, &starts[starts_of->numbers[k]].upid, NULL);
	}
	put_variable(&prefix, variable);
}

void environment_put(void)
{
	struct lists users = find_users();
	struct lists starts_of = find_starts();
	u32 i;

	for (i = 0; i < variables.n; i++)
		put_group(i, &users, &starts_of);
	lists_free(&users);
	lists_free(&starts_of);
	interned_clear(&variables);
	interned_clear(&blocks);
	free(starts);
	starts = NULL;
	n_starts = max_starts = 0;
}
