// SPDX-License-Identifier: Apache-2.0
#include "capture/interned.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "etrace_hash.h"

#include "capture/program.h"

#define FIRST_ITEMS 1024
#define FIRST_BYTES (1 << 16)
#define SLOTS_PER_ITEM 2
#define ALIGNMENT sizeof(uint32_t)

/* One key for all tables. Early at boot the kernel may lack random bytes: nobody waits for them. */
static const struct hash_key *key_of_process(void)
{
	static struct hash_key key;
	static bool is_made;

	if (!is_made && getrandom(&key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key))
		key.words[0] = monotonic_ns();
	is_made = true;
	return &key;
}

static void put_in_slot(struct interned *interned, uint32_t number)
{
	size_t mask = interned->n_slots - 1;
	size_t at = (size_t)interned->items[number].hash & mask;

	while (interned->slots[at])
		at = (at + 1) & mask;
	interned->slots[at] = number + 1;
}

static void grow_items(struct interned *interned)
{
	uint32_t i;

	if (interned->n > UINT32_MAX / 4)
		die("too many different strings");
	interned->max = interned->max ? 2 * interned->max : FIRST_ITEMS;
	interned->items = must_realloc(interned->items, interned->max * sizeof(*interned->items));
	free(interned->slots);
	interned->n_slots = SLOTS_PER_ITEM * (size_t)interned->max;
	interned->slots = must_alloc(interned->n_slots * sizeof(*interned->slots));
	memset(interned->slots, 0, interned->n_slots * sizeof(*interned->slots));
	for (i = 0; i < interned->n; i++)
		put_in_slot(interned, i);
}

static void grow_bytes(struct interned *interned, size_t len)
{
	size_t max = interned->max_bytes ? interned->max_bytes : FIRST_BYTES;

	while (max - interned->n_bytes < len + ALIGNMENT)
		max *= 2;
	if (max == interned->max_bytes)
		return;
	interned->bytes = must_realloc(interned->bytes, max);
	interned->max_bytes = max;
}

static uint32_t append(struct interned *interned, const void *bytes, size_t len, uint64_t hash)
{
	if (interned->n == interned->max)
		grow_items(interned);
	grow_bytes(interned, len);
	interned->items[interned->n] = (struct interned_item){ hash, interned->n_bytes, len };
	if (len)
		memcpy(interned->bytes + interned->n_bytes, bytes, len);
	interned->n_bytes += (len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	put_in_slot(interned, interned->n);
	return interned->n++;
}

/* The number of a string plus 1, or 0 when it is not there. */
static uint32_t find(const struct interned *interned, const void *bytes, size_t len, uint64_t hash)
{
	size_t mask = interned->n_slots - 1;
	size_t at = (size_t)hash & mask;

	for (; interned->n_slots && interned->slots[at]; at = (at + 1) & mask) {
		const struct interned_item *item = &interned->items[interned->slots[at] - 1];

		if (item->hash == hash && item->len == len &&
		    !memcmp(interned->bytes + item->start, bytes, len))
			return interned->slots[at];
	}
	return 0;
}

uint32_t interned_add(struct interned *interned, const void *bytes, size_t len)
{
	uint64_t hash = keyed_hash(key_of_process(), bytes, len);
	uint32_t slot = find(interned, bytes, len, hash);

	return slot ? slot - 1 : append(interned, bytes, len, hash);
}

bool interned_has(const struct interned *interned, const void *bytes, size_t len)
{
	return find(interned, bytes, len, keyed_hash(key_of_process(), bytes, len)) != 0;
}

const void *interned_at(const struct interned *interned, uint32_t number, size_t *len)
{
	*len = interned->items[number].len;
	return interned->bytes + interned->items[number].start;
}

size_t interned_size(const struct interned *interned)
{
	return interned->max * sizeof(*interned->items) +
	       interned->n_slots * sizeof(*interned->slots) + interned->max_bytes;
}

void interned_clear(struct interned *interned)
{
	free(interned->items);
	free(interned->slots);
	free(interned->bytes);
	*interned = (struct interned){ 0 };
}
