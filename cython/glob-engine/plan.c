// SPDX-License-Identifier: Apache-2.0
/* Patterns to tables: which grams are looked for, and who waits for them. */
#include "matcher.h"

#include <errno.h>
#include <stdlib.h>

#define FILTER_BITS_MIN 10 /* 1 KiB */
#define FILTER_BITS_MAX 16 /* 64 KiB: half of it is in a first cache, and no text uses all of it */
#define FILTER_BYTES_PER_NEEDLE 16
/*
 * A gram that a sample has more often than this (of 256 KiB, rows.c) is met for nothing most of the
 * time. When only a later segment of a pattern has it, that is searched for instead: it is near.
 */
#define RARE_COUNT_MAX 16
/* What a gram costs that many segments have: as if a sample had it so often. */
#define USE_COST 4

/* ---- grams ---- */

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

/* One more segment is found by a gram: the next one had better take another. */
static void gram_counts_use(struct gram_counts *counts, const struct gram *gram)
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

/* The rarest of the longest grams of a segment. */
static struct gram gram_choose(const struct gram_counts *counts, const struct globs *globs,
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

/* ---- tables ---- */

static uint32_t bits_for(uint64_t n)
{
	uint32_t bits = 0;

	while ((uint64_t)1 << bits < n)
		bits++;
	return bits;
}

/* Segments with equal elements share a needle. Those with sets do not: they are few. */
struct shared {
	const struct globs *globs;
	uint32_t *slots; /* needle + 1, or 0 */
	uint32_t mask;
};

static uint64_t hash_segment(const struct globs *globs, const struct glob_segment *segment)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (uint32_t i = 0; i < segment->len; i++)
		hash = (hash ^ globs->bytes[segment->at + i]) * 0x100000001b3u;
	return hash ^ hash >> 32;
}

static bool same_segment(const struct globs *globs, const struct glob_segment *a,
			 const struct glob_segment *b)
{
	return a->len == b->len && !memcmp(globs->bytes + a->at, globs->bytes + b->at, a->len);
}

/* The slot of a segment: its needle, or free. */
static uint32_t *shared_slot(const struct shared *shared, const struct matcher *matcher,
			     uint32_t segment)
{
	const struct glob_segment *segments = shared->globs->segments;
	uint32_t i = (uint32_t)hash_segment(shared->globs, &segments[segment]) & shared->mask;

	while (shared->slots[i] &&
	       !same_segment(shared->globs, &segments[segment],
			     &segments[matcher->needles[shared->slots[i] - 1].segment]))
		i = (i + 1) & shared->mask;
	return &shared->slots[i];
}

static void show_to_filter(struct matcher *matcher, const struct gram *gram)
{
	uint32_t last = gram->word >> 24;

	if (gram->len == 2) {
		matcher->pairs[gram->word / 8] |= (uint8_t)(1 << gram->word % 8);
		return;
	}
	matcher->filter[filter_at(gram->word, matcher->filter_shift)] |=
		gram->len == 3 ? 0xff : (uint8_t)(1 << last % 8);
}

static void add_needle(struct matcher *matcher, uint32_t segment, const struct gram *gram)
{
	struct needle *needle = &matcher->needles[matcher->n_needles];
	struct gram_bucket *bucket = find_bucket(matcher, bucket_key(gram->word, gram->len));

	if (!bucket->key) {
		bucket->key = bucket_key(gram->word, gram->len);
		bucket->needle = NO_ONE;
	}
	needle->segment = segment;
	needle->offset = gram->offset;
	needle->next = bucket->needle;
	bucket->needle = matcher->n_needles;
	matcher->first_heads[matcher->n_needles++] = NO_ONE;
	show_to_filter(matcher, gram);
}

/* Make a segment something that can be waited for, unless it has no gram or is not worth it. */
static void plan_segment(struct matcher *matcher, const struct shared *shared,
			 struct gram_counts *counts, uint32_t segment, bool is_trigger)
{
	uint32_t own = 0; /* of one with sets; many of these may have the same bytes */
	uint32_t *slot = matcher->globs->segments[segment].plain ?
				 shared_slot(shared, matcher, segment) : &own;
	struct gram gram;

	if (!*slot) {
		gram = gram_choose(counts, matcher->globs, &matcher->globs->segments[segment]);
		if (!is_trigger && (gram.len < GRAM_MAX || gram.count > RARE_COUNT_MAX))
			return;
		gram_counts_use(counts, &gram);
		add_needle(matcher, segment, &gram);
		*slot = matcher->n_needles;
	}
	matcher->needle_of[segment] = *slot - 1;
}

/* The segment whose gram is the rarest, NO_ONE when none has one. */
static uint32_t choose_trigger(const struct matcher *matcher, const struct gram_counts *counts,
			       const struct glob *glob)
{
	uint32_t best = NO_ONE, best_count = UINT32_MAX, best_len = 0;

	for (uint32_t i = glob->first; i < glob->first + glob->n_segments; i++) {
		struct gram gram =
			gram_choose(counts, matcher->globs, &matcher->globs->segments[i]);

		if (!gram.len || gram.count > best_count ||
		    (gram.count == best_count && gram.len <= best_len))
			continue;
		best = i;
		best_count = gram.count;
		best_len = gram.len;
	}
	return best;
}

static void plan_glob(struct matcher *matcher, const struct shared *shared,
		      struct gram_counts *counts, uint32_t i)
{
	const struct glob *glob = &matcher->globs->globs[i];
	uint32_t trigger = NO_ONE;
	uint32_t needle;

	if (glob->kind == GLOB_NEVER)
		return;
	if (glob->kind != GLOB_ODD)
		trigger = choose_trigger(matcher, counts, glob);
	matcher->triggers[i] = trigger;
	if (trigger == NO_ONE) {
		matcher->always[matcher->n_always++] = i;
		return;
	}
	plan_segment(matcher, shared, counts, trigger, true);
	needle = matcher->needle_of[trigger];
	matcher->beginnings[i].next = matcher->first_heads[needle];
	matcher->first_heads[needle] = i;
	for (uint32_t k = trigger + 1; k + 1 < glob->first + glob->n_segments; k++)
		plan_segment(matcher, shared, counts, k, false);
}

static void *new_array(size_t n, size_t size)
{
	return calloc(n + 1, size);
}

static int allocate(struct matcher *matcher, uint32_t n_segments, uint32_t n)
{
	uint32_t filter_bits = bits_for((uint64_t)n_segments * FILTER_BYTES_PER_NEEDLE);

	if (filter_bits < FILTER_BITS_MIN)
		filter_bits = FILTER_BITS_MIN;
	if (filter_bits > FILTER_BITS_MAX)
		filter_bits = FILTER_BITS_MAX;
	matcher->filter_shift = 32 - filter_bits;
	matcher->buckets_mask = ((uint32_t)1 << bits_for(2 * (uint64_t)n_segments + 1)) - 1;
	matcher->filter = calloc((size_t)1 << filter_bits, 1);
	matcher->pairs = calloc(N_PAIRS / 8, 1);
	matcher->buckets = new_array(matcher->buckets_mask, sizeof(*matcher->buckets));
	matcher->needles = new_array(n_segments, sizeof(*matcher->needles));
	matcher->needle_of = new_array(n_segments, sizeof(*matcher->needle_of));
	matcher->heads = new_array(n_segments, sizeof(*matcher->heads));
	matcher->first_heads = new_array(n_segments, sizeof(*matcher->first_heads));
	matcher->touched_needles = new_array(n_segments, sizeof(*matcher->touched_needles));
	matcher->is_touched = new_array(n_segments, sizeof(*matcher->is_touched));
	matcher->triggers = new_array(n, sizeof(*matcher->triggers));
	matcher->always = new_array(n, sizeof(*matcher->always));
	matcher->progress = new_array(n, sizeof(*matcher->progress));
	matcher->beginnings = new_array(n, sizeof(*matcher->beginnings));
	matcher->touched_patterns = new_array(n, sizeof(*matcher->touched_patterns));
	return matcher->filter && matcher->pairs && matcher->buckets && matcher->needles &&
	       matcher->needle_of && matcher->heads && matcher->first_heads &&
	       matcher->touched_needles && matcher->is_touched && matcher->triggers &&
	       matcher->always && matcher->progress && matcher->beginnings &&
	       matcher->touched_patterns ? 0 : -ENOMEM;
}

static void drop_pairs(struct matcher *matcher)
{
	for (uint32_t i = 0; i < N_PAIRS / 8; i++)
		if (matcher->pairs[i])
			return;
	free(matcher->pairs);
	matcher->pairs = NULL;
}

int matcher_init(struct matcher *matcher, const struct globs *globs, struct gram_counts *counts)
{
	struct shared shared = { globs, NULL, 0 };

	memset(matcher, 0, sizeof(*matcher));
	matcher->globs = globs;
	if (allocate(matcher, globs->n_segments, globs->n))
		return -ENOMEM;
	shared.mask = matcher->buckets_mask;
	shared.slots = new_array(shared.mask, sizeof(*shared.slots));
	if (!shared.slots)
		return -ENOMEM;
	memset(matcher->needle_of, 0xff, globs->n_segments * sizeof(*matcher->needle_of));
	for (uint32_t i = 0; i < globs->n; i++) {
		matcher->beginnings[i].segment = NO_ONE;
		plan_glob(matcher, &shared, counts, i);
	}
	free(shared.slots);
	drop_pairs(matcher);
	memcpy(matcher->heads, matcher->first_heads, matcher->n_needles * sizeof(*matcher->heads));
	memcpy(matcher->progress, matcher->beginnings, globs->n * sizeof(*matcher->progress));
	return 0;
}

void matcher_deinit(struct matcher *matcher)
{
	free(matcher->filter);
	free(matcher->pairs);
	free(matcher->buckets);
	free(matcher->needles);
	free(matcher->needle_of);
	free(matcher->heads);
	free(matcher->first_heads);
	free(matcher->touched_needles);
	free(matcher->is_touched);
	free(matcher->triggers);
	free(matcher->always);
	free(matcher->progress);
	free(matcher->beginnings);
	free(matcher->touched_patterns);
	memset(matcher, 0, sizeof(*matcher));
}
