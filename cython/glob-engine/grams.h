/* SPDX-License-Identifier: Apache-2.0 */
/* Grams: two to four neighbouring literal bytes of a segment, and how often text has them. */
#ifndef ETRACE_GRAMS_H
#define ETRACE_GRAMS_H

#include "glob.h"

#include <endian.h>
#include <string.h>

#define GRAM_MIN 2
#define GRAM_MAX 4
#ifndef GRAM_BITS /* the fuzzer takes few, for speed */
#define GRAM_BITS 16
#endif
#define N_PAIRS 65536

/* How often a sample has grams with the same hash, by their length. */
struct gram_counts {
	uint32_t of[GRAM_MAX + 1][1 << GRAM_BITS];
};

/* One gram of a segment: `offset` bytes into it; len 0: it has none. */
struct gram {
	uint32_t offset;
	uint32_t len;
	uint32_t count;
	uint32_t word; /* its bytes, the first one lowest; 0 above them */
};

/* The four bytes at `text`, the first one lowest. */
static inline uint32_t gram_word(const uint8_t *text)
{
	uint32_t word;

	memcpy(&word, text, sizeof(word));
	return le32toh(word);
}

static inline uint32_t gram_mask(uint32_t len)
{
	return UINT32_MAX >> (32 - 8 * len);
}

/* The highest bits are the best ones. */
static inline uint32_t gram_hash(uint32_t word)
{
	return word * 0x9e3779b1u;
}

/* Count the grams of a text that has ETRACE_GLOB_PAD readable bytes behind it. */
void gram_counts_add(struct gram_counts *counts, const uint8_t *text, size_t len);

/* One more segment is found by a gram: the next one had better take another. */
void gram_counts_use(struct gram_counts *counts, const struct gram *gram);

/* The rarest of the longest grams of a segment. */
struct gram gram_choose(const struct gram_counts *counts, const struct globs *globs,
			const struct glob_segment *segment);

#endif /* ETRACE_GRAMS_H */
