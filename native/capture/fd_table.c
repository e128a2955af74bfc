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
	table->n_words = 1;
	table->words = must_alloc(sizeof(*table->words));
	table->words[0] = (struct fd_word){ .errors = BIT(STANDARD_ERROR) };
	return table;
}

struct fd_table *fd_table_copy(const struct fd_table *from)
{
	struct fd_table *table = must_alloc(sizeof(*table));
	unsigned int i;

	table->refs = 1;
	table->was_shared = from->was_shared;
	table->is_doubtful = from->is_doubtful;
	table->n_words = from->n_words;
	table->words = must_alloc(from->n_words * sizeof(*table->words));
	for (i = 0; i < from->n_words; i++)
		table->words[i] = (struct fd_word){
			.known = from->words[i].known,
			.errors = from->words[i].errors & ~from->words[i].old_errors,
		};
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
	free(table->words);
	free(table);
}

static void grow(struct fd_table *table, unsigned int n_words)
{
	table->words = must_realloc(table->words, n_words * sizeof(*table->words));
	memset(table->words + table->n_words, 0, (n_words - table->n_words) * sizeof(*table->words));
	table->n_words = n_words;
}

/* NULL: nothing is known of it. */
static struct fd_word *word_of(const struct fd_table *table, int fd)
{
	return fd >= 0 && (unsigned int)fd / WORD_BITS < table->n_words ? &table->words[fd / WORD_BITS] : NULL;
}

/* Descriptor 2 itself is standard error wherever it leads. */
static void forget_error(struct fd_word *word, int fd)
{
	if (fd == STANDARD_ERROR)
		return;
	word->errors &= ~BIT(fd % WORD_BITS);
	word->old_errors &= ~BIT(fd % WORD_BITS);
}

bool fd_table_leads_to_error(const struct fd_table *table, int fd)
{
	const struct fd_word *word = word_of(table, fd);

	return word && word->errors & BIT(fd % WORD_BITS);
}

void fd_table_note_exec(struct fd_table *table)
{
	unsigned int i;

	for (i = 0; i < table->n_words; i++)
		table->words[i].old_errors = table->words[i].errors;
	table->words[0].old_errors &= ~BIT(STANDARD_ERROR);
}

void fd_table_add_copy(struct fd_table *table, int from, int to)
{
	const struct fd_word *source = word_of(table, from);
	bool is_error = source && source->errors & BIT(from % WORD_BITS);
	bool is_old = source && source->old_errors & BIT(from % WORD_BITS);
	struct fd_word *word;

	fd_table_add(table, to);
	word = word_of(table, to);
	if (!word || to == STANDARD_ERROR)
		return;
	word->errors |= is_error ? BIT(to % WORD_BITS) : 0;
	word->old_errors |= is_old ? BIT(to % WORD_BITS) : 0;
}

void fd_table_add(struct fd_table *table, int fd)
{
	struct fd_word *word;

	if (fd < 0 || fd >= MAX_FD)
		return;
	if ((unsigned int)fd / WORD_BITS >= table->n_words)
		grow(table, (unsigned int)fd / WORD_BITS + 1);
	word = word_of(table, fd);
	forget_error(word, fd);
	word->known |= BIT(fd % WORD_BITS);
}

void fd_table_remove(struct fd_table *table, int fd)
{
	struct fd_word *word = word_of(table, fd);

	if (!word)
		return;
	forget_error(word, fd);
	word->known &= ~BIT(fd % WORD_BITS);
}

bool fd_table_has(const struct fd_table *table, int fd)
{
	const struct fd_word *word = word_of(table, fd);

	return word && word->known >> (fd % WORD_BITS) & 1;
}

int fd_table_next(const struct fd_table *table, int from)
{
	unsigned int word = (unsigned int)from / WORD_BITS;
	uint64_t mask = ~UINT64_C(0) << (from % WORD_BITS);

	for (; word < table->n_words; word++, mask = ~UINT64_C(0)) {
		uint64_t bits = table->words[word].known & mask;

		if (bits)
			return (int)(word * WORD_BITS) + __builtin_ctzll(bits);
	}
	return -1;
}

int fd_table_lowest_free(const struct fd_table *table, int from)
{
	while (fd_table_has(table, from))
		from++;
	return from;
}
