// SPDX-License-Identifier: Apache-2.0
/*
 * Descriptor tables of the traced tasks, as bitmaps of what is known to be open. They are
 * bookkeeping, never a source of paths: they show that a close or dup must succeed (its exit need
 * not be seen), and which descriptors an exec or close_range closed.
 */
#include "capture/fd_table.h"

#include <stdlib.h>
#include <string.h>

#include "capture/program.h"

#define WORD_BITS 64
#define STANDARD_ERROR 2
#define BIT(n) (UINT64_C(1) << (n))

/* More descriptors than any kernel allows by default (fs.nr_open): above it nothing is tracked. */
#define MAX_FD (1 << 20)

struct fd_table *fd_table_create(void)
{
	struct fd_table *table = must_alloc(sizeof(*table));

	table->refs = 1;
	table->was_shared = false;
	table->is_doubtful = false;
	table->errors = BIT(STANDARD_ERROR);
	table->old_errors = 0;
	table->n_words = 1;
	table->known = must_alloc(sizeof(*table->known));
	table->known[0] = 0;
	return table;
}

struct fd_table *fd_table_copy(const struct fd_table *from)
{
	struct fd_table *table = must_alloc(sizeof(*table));

	table->refs = 1;
	table->was_shared = from->was_shared;
	table->is_doubtful = from->is_doubtful;
	table->errors = from->errors & ~from->old_errors;
	table->old_errors = 0;
	table->n_words = from->n_words;
	table->known = must_alloc(from->n_words * sizeof(*table->known));
	memcpy(table->known, from->known, from->n_words * sizeof(*table->known));
	return table;
}

struct fd_table *fd_table_share(struct fd_table *table)
{
	table->refs++;
	table->was_shared = true;
	return table;
}

void fd_table_drop(struct fd_table *table)
{
	if (!table || --table->refs)
		return;
	free(table->known);
	free(table);
}

static void grow(struct fd_table *table, unsigned int n_words)
{
	table->known = must_realloc(table->known, n_words * sizeof(*table->known));
	memset(table->known + table->n_words, 0,
	       (n_words - table->n_words) * sizeof(*table->known));
	table->n_words = n_words;
}

/* Descriptor 2 itself is standard error wherever it leads. */
static void forget_error(struct fd_table *table, int fd)
{
	if (fd < 0 || fd >= WORD_BITS || fd == STANDARD_ERROR)
		return;
	table->errors &= ~BIT(fd);
	table->old_errors &= ~BIT(fd);
}

bool fd_table_leads_to_error(const struct fd_table *table, int fd)
{
	return fd >= 0 && fd < WORD_BITS && table->errors & BIT(fd);
}

void fd_table_note_exec(struct fd_table *table)
{
	table->old_errors = table->errors & ~BIT(STANDARD_ERROR);
}

void fd_table_add_copy(struct fd_table *table, int from, int to)
{
	bool is_error = fd_table_leads_to_error(table, from);
	bool is_old = is_error && table->old_errors & BIT(from);

	fd_table_add(table, to);
	if (to < 0 || to >= WORD_BITS || to == STANDARD_ERROR)
		return;
	table->errors |= is_error ? BIT(to) : 0;
	table->old_errors |= is_old ? BIT(to) : 0;
}

void fd_table_add(struct fd_table *table, int fd)
{
	unsigned int word = (unsigned int)fd / WORD_BITS;

	forget_error(table, fd);
	if (fd < 0 || fd >= MAX_FD)
		return;
	if (word >= table->n_words)
		grow(table, word + 1);
	table->known[word] |= UINT64_C(1) << (fd % WORD_BITS);
}

void fd_table_remove(struct fd_table *table, int fd)
{
	forget_error(table, fd);
	if (fd_table_has(table, fd))
		table->known[fd / WORD_BITS] &= ~(UINT64_C(1) << (fd % WORD_BITS));
}

bool fd_table_has(const struct fd_table *table, int fd)
{
	if (fd < 0 || (unsigned int)fd / WORD_BITS >= table->n_words)
		return false;
	return table->known[fd / WORD_BITS] >> (fd % WORD_BITS) & 1;
}

int fd_table_next(const struct fd_table *table, int from)
{
	unsigned int word = (unsigned int)from / WORD_BITS;
	uint64_t mask = ~UINT64_C(0) << (from % WORD_BITS);

	for (; word < table->n_words; word++, mask = ~UINT64_C(0)) {
		uint64_t bits = table->known[word] & mask;

		if (bits)
			return (int)(word * WORD_BITS) + __builtin_ctzll(bits);
	}
	return -1;
}
