// SPDX-License-Identifier: Apache-2.0
/* Which gram of a segment is looked for. */
#include "grams.h"

/* What a gram costs that many segments have: as if a sample had it so often. */
#define USE_COST 4

static uint32_t class_of(uint32_t word)
{
	return gram_hash(word) >> (32 - GRAM_BITS);
}

void gram_counts_add(struct gram_counts *counts, const uint8_t *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint32_t word = gram_word(text + i);

		for (uint32_t n = GRAM_MIN; n <= GRAM_MAX; n++)
			counts->of[n][class_of(word & gram_mask(n))]++;
	}
}

void gram_counts_use(struct gram_counts *counts, const struct gram *gram)
{
	counts->of[gram->len][class_of(gram->word)] += USE_COST;
}

/* Length of the run of literals at element `i`, GRAM_MAX at most. */
static uint32_t run_at(const struct globs *globs, const struct glob_segment *segment, uint32_t i)
{
	const uint32_t *sets = globs->sets + segment->at;
	uint32_t n = 0;

	while (n < GRAM_MAX && i + n < segment->len && !sets[i + n])
		n++;
	return n;
}

static uint32_t word_at(const struct globs *globs, const struct glob_segment *segment, uint32_t i,
			uint32_t len)
{
	uint32_t word = 0;

	for (uint32_t k = 0; k < len; k++)
		word |= (uint32_t)globs->bytes[segment->at + i + k] << 8 * k;
	return word;
}

struct gram gram_choose(const struct gram_counts *counts, const struct globs *globs,
			const struct glob_segment *segment)
{
	struct gram best = { 0, 0, UINT32_MAX, 0 };

	for (uint32_t i = 0; i < segment->len; i++) {
		uint32_t len = run_at(globs, segment, i);

		if (len < GRAM_MIN || len < best.len)
			continue;
		uint32_t word = word_at(globs, segment, i, len);
		uint32_t count = counts->of[len][class_of(word)];

		if (len > best.len || count < best.count)
			best = (struct gram){ i, len, count, word };
	}
	return best;
}
