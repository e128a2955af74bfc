/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All patterns against one text in one pass over it. Each pattern waits for the gram of its rarest
 * segment; only a text that has it costs more than a table look-up a byte. From then on the pattern
 * waits for the next of its segments behind the last one found, so no text is read twice for it.
 */
#ifndef ETRACE_MATCHER_H
#define ETRACE_MATCHER_H

#include "grams.h"

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

/* Plan for text as it was counted; `counts` is changed. 0 or -ENOMEM; deinit then as well. */
int matcher_init(struct matcher *matcher, const struct globs *globs, struct gram_counts *counts);
void matcher_deinit(struct matcher *matcher);

/*
 * Set the bit of each pattern that matches in `bits`, which are zero: pattern i is 0x80 >> i % 8 of
 * byte i / 8. The text has ETRACE_GLOB_PAD readable bytes behind it, MATCHER_TEXT_MAX at most before.
 */
void matcher_match(struct matcher *matcher, const uint8_t *text, size_t len, uint8_t *bits);

#endif /* ETRACE_MATCHER_H */
