// SPDX-License-Identifier: Apache-2.0
/*
 * Environments of the executed programs -> UPID and Env groups at the end of the trace. Each
 * distinct variable is kept once, each distinct environment once as a list of variables, so that
 * an execution costs eight bytes where make gives the same environment to all its commands.
 */
#include "capture/trace.h"

#include <stdlib.h>
#include <string.h>

#include "capture/program.h"

struct variable {
	u64 hash;
	struct variable *next; /* in its bucket */
	u32 len;
	u32 index;
	char text[];
};

/* One environment and the processes that were started with it. */
struct block {
	u64 hash;
	struct block *next; /* in its bucket */
	struct block *after; /* in order of making */
	s64 *upids;
	size_t n_upids;
	size_t max_upids;
	size_t n_variables;
	u32 variables[];
};

#define N_BUCKETS (1 << 14)

static struct variable *variable_buckets[N_BUCKETS];
static struct variable **variables; /* by index */
static size_t n_variables;
static size_t max_variables;

static struct block *block_buckets[N_BUCKETS];
static struct block *first_block;
static struct block **last_block = &first_block;

/* FNV-1a, eight bytes at a time where they are there: environments are some kilobytes each. */
static u64 hash_bytes(const void *bytes, size_t len)
{
	const char *at = bytes;
	u64 hash = 0xcbf29ce484222325;
	u64 word;

	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * 0x100000001b3;
		hash ^= hash >> 32;
	}
	for (; len; at++, len--)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
	return hash ^ hash >> 29;
}

static u32 add_variable(const struct etrace_text *text, u64 hash)
{
	struct variable *variable = must_alloc(sizeof(*variable) + text->len);

	variable->hash = hash;
	variable->len = (u32)text->len;
	variable->index = (u32)n_variables;
	memcpy(variable->text, text->text, text->len);
	variable->next = variable_buckets[hash % N_BUCKETS];
	variable_buckets[hash % N_BUCKETS] = variable;
	if (n_variables == max_variables) {
		max_variables = max_variables ? 2 * max_variables : 1024;
		variables = must_realloc(variables, max_variables * sizeof(struct variable *));
	}
	variables[n_variables++] = variable;
	return variable->index;
}

static u32 intern_variable(const struct etrace_text *text)
{
	u64 hash = hash_bytes(text->text, text->len);
	struct variable *variable;

	for (variable = variable_buckets[hash % N_BUCKETS]; variable; variable = variable->next)
		if (variable->hash == hash && variable->len == text->len &&
		    !memcmp(variable->text, text->text, text->len))
			return variable->index;
	return add_variable(text, hash);
}

static struct block *intern_block(const u32 *indices, size_t n)
{
	u64 hash = hash_bytes(indices, n * sizeof(*indices));
	struct block *block;

	for (block = block_buckets[hash % N_BUCKETS]; block; block = block->next)
		if (block->hash == hash && block->n_variables == n &&
		    !memcmp(block->variables, indices, n * sizeof(*indices)))
			return block;
	block = must_alloc(sizeof(*block) + n * sizeof(*indices));
	memset(block, 0, sizeof(*block));
	block->hash = hash;
	block->n_variables = n;
	memcpy(block->variables, indices, n * sizeof(*indices));
	block->next = block_buckets[hash % N_BUCKETS];
	block_buckets[hash % N_BUCKETS] = block;
	*last_block = block;
	last_block = &block->after;
	return block;
}

void environment_add(s64 upid, const struct etrace_text *texts, size_t n)
{
	static u32 *indices;
	static size_t max_indices;
	struct block *block;
	size_t i;

	if (n > max_indices) {
		max_indices = n;
		indices = must_realloc(indices, n * sizeof(*indices));
	}
	for (i = 0; i < n; i++)
		indices[i] = intern_variable(&texts[i]);
	block = intern_block(indices, n);
	if (block->n_upids && block->upids[block->n_upids - 1] == upid)
		return;
	if (block->n_upids == block->max_upids) {
		block->max_upids = block->max_upids ? 2 * block->max_upids : 4;
		block->upids = must_realloc(block->upids, block->max_upids * sizeof(s64));
	}
	block->upids[block->n_upids++] = upid;
}

/* For each variable the blocks that have it, as one array with offsets. */
struct users {
	size_t *start;
	struct block **blocks;
};

static struct users find_users(void)
{
	struct users users;
	struct block *block;
	size_t total = 0;
	size_t i;

	users.start = must_alloc((n_variables + 2) * sizeof(size_t));
	memset(users.start, 0, (n_variables + 2) * sizeof(size_t));
	for (block = first_block; block; block = block->after) {
		for (i = 0; i < block->n_variables; i++)
			users.start[block->variables[i] + 2]++;
		total += block->n_variables;
	}
	for (i = 2; i < n_variables + 2; i++)
		users.start[i] += users.start[i - 1];
	users.blocks = must_alloc((total + 1) * sizeof(struct block *));
	for (block = first_block; block; block = block->after)
		for (i = 0; i < block->n_variables; i++)
			users.blocks[users.start[block->variables[i] + 1]++] = block;
	return users;
}

static void put_upids(const struct etrace_prefix *prefix, const struct block *block)
{
	size_t i;

	for (i = 0; i < block->n_upids; i++)
		trace_put(prefix, ETRACE_EV_UPID, &block->upids[i], NULL);
}

static void put_variable(const struct etrace_prefix *prefix, const struct variable *variable)
{
	do {
		trace_begin();
		etrace_put_env(trace_piece(), prefix, variable->text, variable->len);
	} while (!trace_end());
}

void environment_put(void)
{
	struct users users = find_users();
	struct etrace_prefix prefix;
	size_t i;
	size_t k;

	for (i = 0; i < n_variables; i++) {
		etrace_prefix_init(&prefix, 0, 0, monotonic_ns());
		for (k = users.start[i]; k < users.start[i + 1]; k++)
			put_upids(&prefix, users.blocks[k]);
		put_variable(&prefix, variables[i]);
	}
	free(users.start);
	free(users.blocks);
}
