// SPDX-License-Identifier: Apache-2.0
/*
 * Pages of the ring buffer in user memory. A page lives as long as a record on it is held; some
 * free pages are kept for the next round, the others go back: a burst does not stay forever.
 */
#include "pool.h"

#include <stdlib.h>

#include "collect.h"

#define FREE_BYTES_MAX (8u << 20)

static struct {
	u32 page_bytes;
	struct page *free;
	u64 n_free;
	u64 n_used;
} pool;

void pool_init(u32 page_bytes)
{
	pool.page_bytes = page_bytes;
}

struct page *pool_get(u64 *n_owned)
{
	struct page *page = pool.free;

	if (page) {
		pool.free = page->next;
		pool.n_free--;
	} else {
		page = must_realloc(NULL, sizeof(*page) + pool.page_bytes);
	}
	pool.n_used++;
	page->n_uses = 1;
	page->n_owned = n_owned;
	++*n_owned;
	return page;
}

void pool_put_last(struct page *page)
{
	pool.n_used--;
	--*page->n_owned;
	if (pool.n_free * pool.page_bytes >= FREE_BYTES_MAX) {
		free(page);
		return;
	}
	page->next = pool.free;
	pool.free = page;
	pool.n_free++;
}

u64 pool_bytes(void)
{
	return pool.n_used * pool.page_bytes;
}
