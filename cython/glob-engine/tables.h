/* SPDX-License-Identifier: Apache-2.0 */
/* How a matcher's tables are addressed: one spelling for who fills and who reads them. */
#ifndef ETRACE_TABLES_H
#define ETRACE_TABLES_H

#include "matcher.h"

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

#endif /* ETRACE_TABLES_H */
