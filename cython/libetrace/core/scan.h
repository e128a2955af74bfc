/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte work of the trace reader and the JSON writer that Cython cannot say: unaligned words, SSE2,
 * eight digits at a time. Every function may read up to ETRACE_PAD bytes beyond the range it is
 * given, so every buffer of the parser has that many readable bytes after its end.
 */
#ifndef ETRACE_SCAN_H
#define ETRACE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Blocks of an arena: the first one, those after it. */
#ifdef ETRACE_BLOCK_BYTES /* the fuzzer takes small ones: each object apart, and 1 MiB costs ASan */
#define ETRACE_GROWN_BLOCK_BYTES ETRACE_BLOCK_BYTES
#else
#define ETRACE_BLOCK_BYTES (1 << 18)
#define ETRACE_GROWN_BLOCK_BYTES (1 << 20)
#endif
#define ETRACE_PAD 64
#define ETRACE_DIGITS_MAX 20 /* of a u64 */

static inline uint16_t etrace_load16(const char *at)
{
	uint16_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static inline uint64_t etrace_load64(const char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* Whether two ranges hold the same bytes. Short ones dominate: compare blocks, ignore the excess. */
static inline bool etrace_equal(const char *a, const char *b, size_t len)
{
#ifdef __SSE2__
	for (; len > 16; len -= 16, a += 16, b += 16) {
		__m128i x = _mm_loadu_si128((const __m128i *)a);
		__m128i y = _mm_loadu_si128((const __m128i *)b);

		if (_mm_movemask_epi8(_mm_cmpeq_epi8(x, y)) != 0xffff)
			return false;
	}
	__m128i x = _mm_loadu_si128((const __m128i *)a);
	__m128i y = _mm_loadu_si128((const __m128i *)b);
	unsigned int differ = (unsigned int)_mm_movemask_epi8(_mm_cmpeq_epi8(x, y)) ^ 0xffffu;

	return !(differ & ((1u << len) - 1));
#else
	return !memcmp(a, b, len);
#endif
}

/* First newline in [at, end), or end. */
static inline const char *etrace_find_newline(const char *at, const char *end)
{
#ifdef __SSE2__
	const __m128i newline = _mm_set1_epi8('\n');

	for (; at < end; at += 16) {
		__m128i block = _mm_loadu_si128((const __m128i *)at);
		unsigned int hits = (unsigned int)_mm_movemask_epi8(_mm_cmpeq_epi8(block, newline));

		if (hits) {
			at += __builtin_ctz(hits);
			return at < end ? at : end;
		}
	}
	return end;
#else
	const char *hit = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;

	return hit ? hit : end;
#endif
}

/* First quote or backslash in [at, end), or end: where plain text of a JSON string ends. */
static inline const char *etrace_find_text_end(const char *at, const char *end)
{
#ifdef __SSE2__
	const __m128i quote = _mm_set1_epi8('"');
	const __m128i backslash = _mm_set1_epi8('\\');

	for (; at < end; at += 16) {
		__m128i block = _mm_loadu_si128((const __m128i *)at);
		unsigned int hits = (unsigned int)_mm_movemask_epi8(
			_mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)));

		if (hits) {
			at += __builtin_ctz(hits);
			return at < end ? at : end;
		}
	}
	return end;
#else
	while (at < end && *at != '"' && *at != '\\')
		at++;
	return at;
#endif
}

/* How many of the first eight bytes are digits, and their value. */
static inline unsigned int etrace_digits8(uint64_t word, uint64_t *value)
{
	uint64_t digits = word ^ 0x3030303030303030u;
	uint64_t others = ((digits + 0x0606060606060606u) | digits) & 0xf0f0f0f0f0f0f0f0u;
	unsigned int n = others ? (unsigned int)__builtin_ctzll(others) >> 3 : 8;

	if (!n) {
		*value = 0;
		return 0;
	}
	digits <<= 64 - 8 * n;
	digits = digits * 10 + (digits >> 8);
	*value = (((digits & 0x000000ff000000ffu) * 0x000f424000000064u) +
		  (((digits >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u)) >> 32;
	return n;
}

/*
 * Decimal number at *at, which moves after it. Returns the number of digits, 0 when there is none,
 * -1 when the value does not fit into 64 bits (*at then is on some digit of it).
 */
static inline int etrace_decimal(const char **at, uint64_t *value)
{
	unsigned int n = etrace_digits8(etrace_load64(*at), value);
	const char *start = *at;

	*at += n;
	if (n < 8)
		return (int)n;
	for (; **at >= '0' && **at <= '9'; (*at)++) {
		if (__builtin_mul_overflow(*value, (uint64_t)10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(**at - '0'), value))
			return -1;
	}
	return *at - start > 1 << 30 ? 1 << 30 : (int)(*at - start);
}

/* Mixes by 64 x 64 -> 128 bit multiplication, as wyhash does. */
static inline uint64_t etrace_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t etrace_hash_with(const char *at, size_t len, uint64_t seed, uint64_t key)
{
	uint64_t hash = seed ^ (len * 0x9e3779b97f4a7c15u);

	for (; len > 16; len -= 16, at += 16)
		hash = etrace_mix(etrace_load64(at) ^ 0xa0761d6478bd642fu ^ key,
				  etrace_load64(at + 8) ^ hash);
	if (len > 8)
		return etrace_mix(etrace_load64(at) ^ 0xe7037ed1a0b428dbu ^ key,
				  (etrace_load64(at + 8) << (128 - 8 * len)) ^ hash);
	if (!len)
		return etrace_mix(hash, 0x8ebc6af09c88c6e3u);
	return etrace_mix((etrace_load64(at) << (64 - 8 * len)) ^ 0x8ebc6af09c88c6e3u ^ key, hash);
}

/* Of contents: the same on every machine. */
static inline uint64_t etrace_hash(const char *at, size_t len, uint64_t seed)
{
	return etrace_hash_with(at, len, seed, 0);
}

/*
 * Of strings for a table, with a random seed. Without a key that nobody knows, eight bytes that equal
 * a constant make a product of 0 with any seed, and all strings with them have one hash.
 */
static inline uint64_t etrace_keyed_hash(const char *at, size_t len, uint64_t seed)
{
	return etrace_hash_with(at, len, seed, (seed ^ 0x589965cc75374cc3u) * 0x1d8e4e27c47d124fu);
}

static inline uint64_t etrace_hash64(uint64_t value, uint64_t seed)
{
	return etrace_mix(value ^ 0xa0761d6478bd642fu, seed ^ 0xe7037ed1a0b428dbu);
}

/* Copies in blocks of 16: both sides have ETRACE_PAD bytes to spare. */
static inline char *etrace_copy(char *to, const char *from, size_t len)
{
#ifdef __SSE2__
	size_t done;

	for (done = 0; done < len; done += 16)
		_mm_storeu_si128((__m128i *)(to + done),
				 _mm_loadu_si128((const __m128i *)(from + done)));
#else
	memcpy(to, from, len);
#endif
	return to + len;
}

/* Whether JSON text may hold this byte of UTF-8 unchanged, looking at nothing else. */
static inline bool etrace_is_plain(unsigned char byte)
{
	return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* Copies up to the first byte that is not plain; returns how many were. */
static inline size_t etrace_copy_plain(char *to, const char *from, size_t len)
{
	size_t done = 0;
#ifdef __SSE2__
	const __m128i space = _mm_set1_epi8(0x20); /* signed: bytes above 0x7f are less, too */
	const __m128i quote = _mm_set1_epi8('"');
	const __m128i backslash = _mm_set1_epi8('\\');

	for (; done < len; done += 16) {
		__m128i block = _mm_loadu_si128((const __m128i *)(from + done));
		__m128i odd = _mm_or_si128(_mm_cmplt_epi8(block, space),
					   _mm_or_si128(_mm_cmpeq_epi8(block, quote),
							_mm_cmpeq_epi8(block, backslash)));
		unsigned int hits = (unsigned int)_mm_movemask_epi8(odd);

		_mm_storeu_si128((__m128i *)(to + done), block);
		if (hits) {
			done += (size_t)__builtin_ctz(hits);
			return done < len ? done : len;
		}
	}
	return len;
#else
	for (; done < len && etrace_is_plain((unsigned char)from[done]); done++)
		to[done] = from[done];
	return done;
#endif
}

/* Length of the well-formed UTF-8 sequence at `at`, 0 when there is none (Unicode 15, table 3-7). */
static inline size_t etrace_utf8_length(const char *at, size_t len)
{
	const unsigned char *byte = (const unsigned char *)at;
	unsigned char low = 0x80, high = 0xbf;
	size_t n = byte[0] < 0x80 ? 1 : byte[0] < 0xc2 ? 0 : byte[0] < 0xe0 ? 2 :
		   byte[0] < 0xf0 ? 3 : byte[0] < 0xf5 ? 4 : 0;
	size_t i;

	if (n > len)
		return 0;
	if (byte[0] == 0xe0)
		low = 0xa0; /* overlong */
	else if (byte[0] == 0xed)
		high = 0x9f; /* surrogates */
	else if (byte[0] == 0xf0)
		low = 0x90; /* overlong */
	else if (byte[0] == 0xf4)
		high = 0x8f; /* above U+10FFFF */
	for (i = 1; i < n; i++, low = 0x80, high = 0xbf)
		if (byte[i] < low || byte[i] > high)
			return 0;
	return n;
}

static inline char *etrace_put_pair(char *to, unsigned int value)
{
	static const char pairs[] =
		"00010203040506070809101112131415161718192021222324"
		"25262728293031323334353637383940414243444546474849"
		"50515253545556575859606162636465666768697071727374"
		"75767778798081828384858687888990919293949596979899";

	memcpy(to, pairs + 2 * value, 2);
	return to + 2;
}

static inline char *etrace_put_eight(char *to, uint32_t value)
{
	uint32_t high = value / 10000, low = value % 10000;

	to = etrace_put_pair(to, high / 100);
	to = etrace_put_pair(to, high % 100);
	to = etrace_put_pair(to, low / 100);
	return etrace_put_pair(to, low % 100);
}

static inline char *etrace_put_small(char *to, uint32_t value)
{
	char digits[8];
	int n = 0;

	do {
		digits[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (n)
		*to++ = digits[--n];
	return to;
}

/* Decimal digits of a u64, at most ETRACE_DIGITS_MAX; returns the end of them. */
static inline char *etrace_put_decimal(char *to, uint64_t value)
{
	const uint32_t eight = 100000000;
	uint64_t high = value / eight;

	if (!high)
		return etrace_put_small(to, (uint32_t)value);
	if (high < eight)
		to = etrace_put_small(to, (uint32_t)high);
	else
		to = etrace_put_eight(etrace_put_small(to, (uint32_t)(high / eight)),
				      (uint32_t)(high % eight));
	return etrace_put_eight(to, (uint32_t)(value % eight));
}

/* A literal: the compiler knows its length. */
static inline char *etrace_put_text(char *to, const char *text)
{
	size_t len = strlen(text);

	memcpy(to, text, len);
	return to + len;
}

static inline void etrace_prefetch(const void *at)
{
	__builtin_prefetch(at);
}

/* Counter shared by threads. */
static inline uint64_t etrace_take(uint64_t *counter)
{
	return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static inline uint64_t etrace_peek(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* Adds n, and returns what was there before. */
static inline uint64_t etrace_claim(uint64_t *counter, uint64_t n)
{
	return __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static inline void etrace_add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

#endif /* ETRACE_SCAN_H */
