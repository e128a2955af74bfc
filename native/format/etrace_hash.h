/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * SipHash-1-3 of bytes: a hash with a random key, so that no program of the build can choose
 * strings that fall into one place of a table. A seed before FNV-1a is not enough: differences of
 * its input that cancel out do so with any seed. The algorithm: Aumasson and Bernstein, "SipHash: a
 * fast short-input PRF", 2012. Nothing of the C library is needed.
 */
#ifndef ETRACE_HASH_H
#define ETRACE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
	uint64_t words[2];
};

static inline uint64_t hash_rotate(uint64_t word, int n)
{
	return word << n | word >> (64 - n);
}

static inline void hash_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = hash_rotate(v[1], 13) ^ v[0];
	v[3] = hash_rotate(v[3], 16) ^ v[2];
	v[0] = hash_rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = hash_rotate(v[1], 17) ^ v[2];
	v[3] = hash_rotate(v[3], 21) ^ v[0];
	v[2] = hash_rotate(v[2], 32);
}

static inline void hash_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	hash_round(v);
	v[0] ^= word;
}

static inline uint64_t keyed_hash(const struct hash_key *key, const void *bytes, size_t len)
{
	const unsigned char *at = (const unsigned char *)bytes;
	uint64_t v[4] = { key->words[0] ^ 0x736f6d6570736575u, key->words[1] ^ 0x646f72616e646f6du,
			  key->words[0] ^ 0x6c7967656e657261u, key->words[1] ^ 0x7465646279746573u };
	uint64_t word;
	uint64_t last = (uint64_t)len << 56;
	size_t left = len;

	for (; left >= sizeof(word); at += sizeof(word), left -= sizeof(word)) {
		__builtin_memcpy(&word, at, sizeof(word));
		hash_word(v, word);
	}
	while (left--)
		last |= (uint64_t)at[left] << (8 * left);
	hash_word(v, last);
	v[2] ^= 0xff;
	hash_round(v);
	hash_round(v);
	hash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif /* ETRACE_HASH_H */
