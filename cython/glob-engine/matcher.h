/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All patterns against one text in one pass over it. Each pattern waits for the gram of its rarest
 * segment; only a text that has it costs more than a table look-up a byte. From then on the pattern
 * waits for the next of its segments after the last one found, so no text is read twice for it.
 *
 * Grams are two to four neighbouring literal bytes of a segment.
 */
#ifndef ETRACE_MATCHER_H
#define ETRACE_MATCHER_H

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

/* A segment that some pattern waits for; found by the gram at `offset` of it. */
struct needle {
	uint32_t segment;
	uint32_t offset;
	uint32_t next; /* of the same gram, NO_ONE */
};

struct gram_bucket {
	uint64_t key; /* of no gram: 0 */
	uint32_t needle; /* the first one */
};

/* How far a pattern came in the current text. */
struct progress {
	uint32_t next; /* pattern that waits for the same needle, NO_ONE */
	uint32_t segment; /* that it waits for; NO_ONE: no gram of it was met */
	uint32_t end; /* of the segment before it */
};

struct matcher {
	const struct globs *globs;
	uint8_t *filter; /* by hash of three bytes: a bit by the fourth, all for grams of three */
	uint8_t *pairs; /* a bit for each pair of bytes; NULL without grams of two */
	uint32_t filter_shift;
	struct gram_bucket *buckets;
	uint32_t buckets_mask;
	struct needle *needles;
	uint32_t n_needles;
	uint32_t *needle_of; /* by segment; NO_ONE: it is searched for when its turn comes */
	uint32_t *triggers; /* by pattern: the segment whose gram wakes it, NO_ONE */
	uint32_t *always; /* patterns without a gram */
	uint32_t n_always;
	uint32_t *heads, *first_heads; /* by needle: the first pattern that waits for it */
	struct progress *progress, *beginnings; /* by pattern */
	uint32_t *touched_needles, *touched_patterns;
	uint32_t n_touched_needles, n_touched_patterns;
	bool *is_touched; /* by needle */
};

#define NO_ONE UINT32_MAX
#define MATCHER_TEXT_MAX (UINT32_MAX - ETRACE_GLOB_PAD)

/* Count the grams of a text that has ETRACE_GLOB_PAD readable bytes after it. */
void gram_counts_add(struct gram_counts *counts, const uint8_t *text, size_t len);

/* Plan for text as it was counted; `counts` is changed. 0 or -ENOMEM; deinit then as well. */
int matcher_init(struct matcher *matcher, const struct globs *globs, struct gram_counts *counts);
void matcher_deinit(struct matcher *matcher);

/*
 * Set the bit of each pattern that matches in `bits`, which are zero: pattern i is 0x80 >> i % 8 of
 * byte i / 8. The text has ETRACE_GLOB_PAD readable bytes after it, MATCHER_TEXT_MAX at most before.
 */
void matcher_match(struct matcher *matcher, const uint8_t *text, size_t len, uint8_t *bits);

/* ---- how the tables are addressed ---- */

/* Byte of the filter for the first three bytes of `word`. */
static inline uint32_t filter_at(uint32_t word, uint32_t filter_shift)
{
	return gram_hash(word << 8) >> filter_shift;
}

/* Never 0. */
static inline uint64_t bucket_key(uint32_t word, uint32_t len)
{
	return (uint64_t)len << 32 | word;
}

/* The bucket of a key, or the free one where it would be. */
static inline struct gram_bucket *find_bucket(const struct matcher *matcher, uint64_t key)
{
	uint32_t i = (gram_hash((uint32_t)key) >> 8) + (uint32_t)(key >> 32);

	for (i &= matcher->buckets_mask;; i = (i + 1) & matcher->buckets_mask)
		if (matcher->buckets[i].key == key || !matcher->buckets[i].key)
			return &matcher->buckets[i];
}

#endif /* ETRACE_MATCHER_H */
