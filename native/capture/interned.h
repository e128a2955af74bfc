/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings of bytes, each kept once and numbered from 0 in order of their coming. A look-up takes the
 * same time however many there are, and whichever strings a program chooses.
 */
#ifndef ETRACE_CAPTURE_INTERNED_H
#define ETRACE_CAPTURE_INTERNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interned_item {
	uint64_t hash;
	size_t start; /* in `bytes` */
	size_t len;
};

/* All zero: empty. */
struct interned {
	struct interned_item *items; /* by number */
	uint32_t n;
	uint32_t max;
	uint32_t *slots; /* numbers + 1; 0: free */
	size_t n_slots;	 /* a power of two, at least twice `n` */
	char *bytes;
	size_t n_bytes;
	size_t max_bytes;
};

/* The number of a string, which is added unless it is there; an added one has number n - 1. */
uint32_t interned_add(struct interned *interned, const void *bytes, size_t len);

/* Whether a string is there. */
bool interned_has(const struct interned *interned, const void *bytes, size_t len);

/* The bytes of a string, until the next one is added; aligned for uint32_t. */
const void *interned_at(const struct interned *interned, uint32_t number, size_t *len);

/* How much memory it takes. */
size_t interned_size(const struct interned *interned);

/* Forget all strings and return their memory. */
void interned_clear(struct interned *interned);

#endif /* ETRACE_CAPTURE_INTERNED_H */
