// SPDX-License-Identifier: Apache-2.0
/*
 * The pass over a text. Grams are met in the order of their place. That is enough: a segment that
 * counts begins after the end of the one before it, so its gram is met later, too.
 */
#include "matcher.h"

struct pass {
	struct matcher *matcher;
	const uint8_t *text;
	uint32_t len;
	uint8_t *bits;
};

static void set_bit(const struct pass *pass, uint32_t pattern)
{
	pass->bits[pattern / 8] |= (uint8_t)(0x80 >> pattern % 8);
}

static void touch(struct matcher *matcher, uint32_t needle)
{
	if (matcher->is_touched[needle])
		return;
	matcher->is_touched[needle] = true;
	matcher->touched_needles[matcher->n_touched_needles++] = needle;
}

static void wait_for(struct matcher *matcher, uint32_t pattern, uint32_t needle)
{
	touch(matcher, needle);
	matcher->progress[pattern].next = matcher->heads[needle];
	matcher->heads[needle] = pattern;
}

/* Where the last segment of a pattern begins; the text is long enough for all of them. */
static uint32_t last_start(const struct pass *pass, const struct glob *glob)
{
	const struct globs *globs = pass->matcher->globs;

	return pass->len - globs->segments[glob->first + glob->n_segments - 1].len;
}

/* Find a segment between `from` and `limit`; its end, or NO_ONE. */
static uint32_t find_between(const struct pass *pass, uint32_t segment, uint32_t from,
			     uint32_t limit)
{
	const struct globs *globs = pass->matcher->globs;
	uint32_t len = globs->segments[segment].len;
	const uint8_t *found;

	if (from > limit || limit - from < len)
		return NO_ONE;
	found = glob_find(globs, &globs->segments[segment], pass->text + from,
			  pass->text + limit - len);
	return found ? (uint32_t)(found - pass->text) + len : NO_ONE;
}

/* Go on after a segment that ends at `end`, as far as one that has to be waited for. */
static void advance(const struct pass *pass, uint32_t pattern, uint32_t end)
{
	struct matcher *matcher = pass->matcher;
	const struct glob *glob = &matcher->globs->globs[pattern];
	struct progress *progress = &matcher->progress[pattern];
	uint32_t last = glob->first + glob->n_segments - 1;
	uint32_t limit = last_start(pass, glob);

	for (uint32_t i = progress->segment + 1; i < last; i++) {
		if (matcher->needle_of[i] != NO_ONE) {
			progress->segment = i;
			progress->end = end;
			wait_for(matcher, pattern, matcher->needle_of[i]);
			return;
		}
		end = find_between(pass, i, end, limit);
		if (end == NO_ONE)
			return;
	}
	if (end <= limit)
		set_bit(pass, pattern);
}

/*
 * The first time that a gram of a pattern is met: look at what must be before its segment and at
 * the end. False: there is nothing to wait for, the pattern matches the text or does not.
 */
static bool rouse(const struct pass *pass, uint32_t pattern)
{
	struct matcher *matcher = pass->matcher;
	const struct globs *globs = matcher->globs;
	const struct glob *glob = &globs->globs[pattern];
	uint32_t last = glob->first + glob->n_segments - 1;
	uint32_t trigger = matcher->triggers[pattern];
	uint32_t end = globs->segments[glob->first].len;

	matcher->touched_patterns[matcher->n_touched_patterns++] = pattern;
	matcher->progress[pattern].segment = trigger;
	if (trigger == glob->first || trigger == last) {
		if (glob_match(globs, glob, pass->text, pass->len))
			set_bit(pass, pattern);
		return false;
	}
	if (pass->len < glob->min_len ||
	    !glob_segment_at(globs, &globs->segments[glob->first], pass->text) ||
	    !glob_segment_at(globs, &globs->segments[last], pass->text + last_start(pass, glob)))
		return false;
	for (uint32_t i = glob->first + 1; i < trigger && end != NO_ONE; i++)
		end = find_between(pass, i, end, last_start(pass, glob));
	matcher->progress[pattern].end = end;
	return end != NO_ONE;
}

static void step(const struct pass *pass, uint32_t pattern, uint32_t needle, uint32_t start)
{
	struct matcher *matcher = pass->matcher;
	struct progress *progress = &matcher->progress[pattern];

	if (progress->segment == NO_ONE && !rouse(pass, pattern))
		return;
	if (start < progress->end)
		wait_for(matcher, pattern, needle);
	else
		advance(pass, pattern,
			start + matcher->globs->segments[progress->segment].len);
}

/* A needle may be at `start`: let those that wait for it go on. */
static void try_needle(const struct pass *pass, uint32_t i, uint32_t at)
{
	struct matcher *matcher = pass->matcher;
	const struct needle *needle = &matcher->needles[i];
	const struct glob_segment *segment = &matcher->globs->segments[needle->segment];
	uint32_t start = at - needle->offset;
	uint32_t pattern, next;

	if (at < needle->offset || segment->len > pass->len - start ||
	    !glob_work(segment->len / 16) || !glob_segment_at(matcher->globs, segment, pass->text + start))
		return;
	touch(matcher, i);
	pattern = matcher->heads[i];
	matcher->heads[i] = NO_ONE;
	for (; pattern != NO_ONE; pattern = next) {
		next = matcher->progress[pattern].next;
		if (glob_work(1))
			step(pass, pattern, i, start);
	}
}

static void try_bucket(const struct pass *pass, uint64_t key, uint32_t at)
{
	const struct matcher *matcher = pass->matcher;
	const struct gram_bucket *bucket = find_bucket(matcher, key);

	if (!bucket->key)
		return;
	for (uint32_t i = bucket->needle; i != NO_ONE && glob_work(1); i = matcher->needles[i].next)
		if (matcher->heads[i] != NO_ONE)
			try_needle(pass, i, at);
}

static void meet(const struct pass *pass, uint32_t word, uint32_t at, uint8_t lasts)
{
	try_bucket(pass, bucket_key(word, 4), at);
	if (lasts == 0xff)
		try_bucket(pass, bucket_key(word & gram_mask(3), 3), at);
}

static inline __attribute__((always_inline)) void scan(const struct pass *pass, bool has_pairs)
{
	const uint8_t *filter = pass->matcher->filter;
	const uint8_t *pairs = pass->matcher->pairs;
	const uint8_t *text = pass->text;
	uint32_t shift = pass->matcher->filter_shift;
	uint32_t len = pass->len;

	for (uint32_t at = 0; at < len; at++) {
		uint32_t word = gram_word(text + at);
		uint32_t pair = word & gram_mask(2);
		uint8_t lasts = filter[filter_at(word, shift)];

		if (__builtin_expect(lasts >> (word >> 24) % 8 & 1, 0))
			meet(pass, word, at, lasts);
		if (has_pairs && __builtin_expect(pairs[pair / 8] >> pair % 8 & 1, 0))
			try_bucket(pass, bucket_key(pair, 2), at);
	}
}

/* What the text changed is put back; it is little. */
static void forget(struct matcher *matcher)
{
	for (uint32_t i = 0; i < matcher->n_touched_needles; i++) {
		uint32_t needle = matcher->touched_needles[i];

		matcher->heads[needle] = matcher->first_heads[needle];
		matcher->is_touched[needle] = false;
	}
	for (uint32_t i = 0; i < matcher->n_touched_patterns; i++) {
		uint32_t pattern = matcher->touched_patterns[i];

		matcher->progress[pattern] = matcher->beginnings[pattern];
	}
	matcher->n_touched_needles = 0;
	matcher->n_touched_patterns = 0;
}

void matcher_match(struct matcher *matcher, const uint8_t *text, size_t len, uint8_t *bits)
{
	const struct pass pass = { matcher, text, (uint32_t)len, bits };

	if (matcher->pairs)
		scan(&pass, true);
	else if (matcher->n_needles)
		scan(&pass, false);
	forget(matcher);
	for (uint32_t i = 0; i < matcher->n_always; i++) {
		uint32_t pattern = matcher->always[i];

		if (glob_match(matcher->globs, &matcher->globs->globs[pattern], text, len))
			set_bit(&pass, pattern);
	}
}
