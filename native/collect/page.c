// SPDX-License-Identifier: Apache-2.0
/*
 * Pages of the kernel's ring buffer -> records. Format: a page header (time stamp, commit), then
 * entries, each with a word of 5 bits type_len and 27 bits time delta; include/linux/ring_buffer.h,
 * kernel/trace/ring_buffer.c of Linux 5.10 to 6.12, and `events/header_page`, `header_event` of
 * tracefs. Every length is checked: a capture may be replayed from a file that anybody wrote.
 */
#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect.h"

/* struct ring_buffer_event; the order of bit fields follows the byte order, as in the kernel */
struct entry_header {
	u32 type_len : 5, time_delta : 27;
};

enum {
	TYPE_DATA_MAX = 28, /* up to here: type_len * 4 bytes of data; 0: the next word says */
	TYPE_PADDING = 29,
	TYPE_TIME_EXTEND = 30,
	TYPE_TIME_STAMP = 31,
};

#define WORD sizeof(u32)

/* in `commit`, above the length */
#define MISSED_EVENTS (1u << 31)
#define MISSED_STORED (1u << 30) /* their number follows the data, as an unsigned long */
#define COMMIT_MASK (MISSED_STORED - 1)

static u32 load_u32(const char *at)
{
	u32 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static u64 load_u64(const char *at)
{
	u64 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static u16 load_u16(const char *at)
{
	u16 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* A `long` of the kernel. */
static u64 load_long(const char *at, u32 bytes)
{
	return bytes == sizeof(u64) ? load_u64(at) : load_u32(at);
}

static void note_missed(struct page_cursor *cursor, u64 commit, size_t bytes)
{
	u32 stored_bytes = cursor->layout->commit.bytes;

	cursor->missed = commit & MISSED_EVENTS;
	cursor->n_missed = 0;
	if (cursor->missed && (commit & MISSED_STORED) && !cursor->cut &&
	    bytes - cursor->end >= stored_bytes)
		cursor->n_missed = load_long(cursor->page + cursor->end, stored_bytes);
}

void page_begin(struct page_cursor *cursor, const struct page_layout *layout, const char *page,
		size_t bytes)
{
	bool has_header = bytes >= layout->data_offset;
	u64 commit = has_header ? load_long(page + layout->commit.offset, layout->commit.bytes) : 0;
	u64 end = layout->data_offset + (commit & COMMIT_MASK);

	cursor->layout = layout;
	cursor->page = page;
	cursor->at = has_header ? layout->data_offset : 0;
	cursor->cut = !has_header || end > bytes;
	cursor->end = !has_header ? 0 : end > bytes ? (u32)bytes : (u32)end;
	note_missed(cursor, commit, bytes);
}

static enum page_result read_record(const struct page_layout *layout, const char *entry,
				    u32 bytes, struct record_view *record)
{
	u32 location, offset, len;

	if (bytes < layout->common_type + sizeof(u16) ||
	    load_u16(entry + layout->common_type) != layout->type)
		return PAGE_FOREIGN;
	if (bytes < layout->record_bytes)
		return PAGE_BAD_RECORD;
	location = load_u32(entry + layout->payload);
	offset = location & 0xffff;
	len = location >> 16;
	if (offset + len > bytes)
		return PAGE_BAD_RECORD;
	record->time_ns = load_u64(entry + layout->time_ns);
	record->upid = (s64)load_u64(entry + layout->upid);
	record->cpu = load_u16(entry + layout->cpu);
	record->flags = load_u16(entry + layout->flags);
	record->payload = entry + offset;
	record->payload_bytes = (u16)len;
	return PAGE_RECORD;
}

enum page_result page_next(struct page_cursor *cursor, struct record_view *record)
{
	while (cursor->end - cursor->at >= sizeof(struct entry_header)) {
		const char *at = cursor->page + cursor->at;
		u32 left = cursor->end - cursor->at;
		struct entry_header header;
		u64 skip = WORD, bytes = 0; /* before the data, and of the data */

		memcpy(&header, at, sizeof(header));
		if (header.type_len == TYPE_PADDING && !header.time_delta)
			break; /* nothing follows on this page */
		if (header.type_len == 0 || header.type_len >= TYPE_PADDING) {
			if (left < 2 * WORD)
				return PAGE_DAMAGED;
			skip = 2 * WORD;
		}
		if (header.type_len == 0 || header.type_len == TYPE_PADDING) {
			bytes = load_u32(at + WORD); /* counts its own word */
			if (bytes < WORD)
				return PAGE_DAMAGED;
			bytes -= WORD;
		} else if (header.type_len <= TYPE_DATA_MAX) {
			bytes = header.type_len * WORD;
		}
		if (skip + bytes > left)
			return PAGE_DAMAGED;
		cursor->at += (u32)(skip + (bytes + WORD - 1) / WORD * WORD);
		if (cursor->at > cursor->end)
			cursor->at = cursor->end;
		if (header.type_len <= TYPE_DATA_MAX)
			return read_record(cursor->layout, at + skip, (u32)bytes, record);
	}
	return cursor->cut ? PAGE_DAMAGED : PAGE_END;
}

/* ---- memory of pages ---- */

/*
 * Pages of the ring buffer in user memory. A page lives as long as a record on it is held; some
 * free pages are kept for the next round, the others go back: a burst does not stay forever.
 */

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
