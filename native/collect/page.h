/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the kernel's ring buffer: their layout, what is on them, and the memory that holds them. */
#ifndef ETRACE_COLLECT_PAGE_H
#define ETRACE_COLLECT_PAGE_H

#include "etrace_record.h"

/* A field of a fixed size. */
struct field {
	u32 offset;
	u32 bytes;
};

/* The layout of pages and records, from the `format` files of tracefs. */
struct page_layout {
	u32 page_bytes;
	u32 data_offset;
	struct field commit; /* of the page */
	u32 type; /* number of the trace event */
	u32 record_bytes; /* of an entry up to the end of the last field read here */
	u32 common_type, upid, time_ns, cpu, flags, payload; /* offsets in an entry; sizes are checked */
};

struct record_view {
	u64 time_ns;
	s64 upid;
	const char *payload;
	u16 payload_bytes;
	u16 cpu;
	u16 flags;
};

enum page_result {
	PAGE_RECORD,
	PAGE_END,
	PAGE_FOREIGN, /* a record of another trace event */
	PAGE_BAD_RECORD, /* its fields contradict each other; the next one may be good */
	PAGE_DAMAGED, /* the rest of the page cannot be read */
};

struct page_cursor {
	const struct page_layout *layout;
	const char *page;
	u32 at; /* offset in the page */
	u32 end;
	bool cut; /* the page is shorter than it says */
	bool missed; /* records before this page were overwritten ... */
	u64 n_missed; /* ... this many; 0: not known */
};

/* Begin at the first record of `bytes` bytes of a page; the last of them may be missing. */
void page_begin(struct page_cursor *cursor, const struct page_layout *layout, const char *page,
		size_t bytes);

/* The next record. After PAGE_DAMAGED `cursor->at` is where the damage is. */
enum page_result page_next(struct page_cursor *cursor, struct record_view *record);

/* ---- memory of the pages whose records are still held; pages are used again ---- */

struct page {
	struct page *next; /* while it is free */
	u64 *n_owned; /* pages in use of the CPU that it was read from */
	u32 n_uses; /* its held records, and one while it is being read */
	char data[] __attribute__((aligned(8)));
};

void pool_init(u32 page_bytes);

/* A page in one use; `*n_owned` is one more while it is in use. */
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

#endif /* ETRACE_COLLECT_PAGE_H */
