/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the pages whose records are still held; pages are used again. */
#ifndef ETRACE_COLLECT_POOL_H
#define ETRACE_COLLECT_POOL_H

#include "etrace_format.h"

struct page {
	struct page *next; /* while it is free */
	u64 *n_owned; /* pages in use of the CPU that it was read from */
	u32 n_uses; /* its held records, and one while it is being read */
	char data[] __attribute__((aligned(8)));
};

void pool_init(u32 page_bytes);

/* A page in one use; `*n_owned` is one more as long as it is in use. */
struct page *pool_get(u64 *n_owned);

static inline void page_use(struct page *page)
{
	page->n_uses++;
}

void pool_put_last(struct page *page);

/* End a use; the last one frees the page. */
static inline void page_put(struct page *page)
{
	if (--page->n_uses == 0)
		pool_put_last(page);
}

/* Bytes of all pages in use. */
u64 pool_bytes(void);

#endif /* ETRACE_COLLECT_POOL_H */
