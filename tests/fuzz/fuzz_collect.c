// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target: the input is pages of two CPUs' ring buffers, of any content. They go through
 * page.c, merge.c and the formatter as etrace_cat does it. No access outside the pages, every page
 * comes back, events are whole, text is whole lines with a prefix. Run by tests/fuzz/run.py.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect.h"
#include "merge.h"
#include "page.h"

#define PAGE_BYTES 512
#define N_CPUS 2
#define TEXT_BYTES (1 << 20)

#define REQUIRE(condition)                                                             \
	do {                                                                           \
		if (!(condition)) {                                                    \
			fprintf(stderr, "fuzz_collect: not so: %s\n", #condition);     \
			abort();                                                       \
		}                                                                      \
	} while (0)

struct options options;
struct counters counters;

static char text[TEXT_BYTES];

/* As the module's format file has it. */
static const struct page_layout layout = {
	.page_bytes = PAGE_BYTES,
	.data_offset = 16,
	.commit = { 8, 8 },
	.type = 7,
	.record_bytes = 32,
	.common_type = 0,
	.upid = 8,
	.time_ns = 16,
	.cpu = 24,
	.flags = 26,
	.payload = 28,
};

void *must_realloc(void *old, size_t size)
{
	void *new = realloc(old, size ? size : 1);

	REQUIRE(new);
	return new;
}

void say(const char *format, ...)
{
	(void)format;
}

static void check_lines(const char *at, const char *end)
{
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		REQUIRE(newline);
		REQUIRE(isdigit((unsigned char)*at) || *at == '-');
		REQUIRE(memchr(at, '!', (size_t)(newline - at)));
		at = newline + 1;
	}
}

static void check_event(const struct held_record *records, size_t n)
{
	size_t i;

	REQUIRE(n > 0);
	REQUIRE(!(records[0].flags & ETRACE_RECORD_CONTINUES));
	REQUIRE(!(records[n - 1].flags & ETRACE_RECORD_MORE));
	for (i = 1; i < n; i++) {
		REQUIRE(records[i].upid == records[0].upid);
		REQUIRE(records[i].time_ns == records[0].time_ns);
	}
}

void emit_event(const struct held_record *records, size_t n)
{
	struct etrace_prefix prefix;
	struct etrace_out out;
	bool good = true;
	size_t i;

	check_event(records, n);
	etrace_prefix_init(&prefix, records->upid, records->cpu, records->time_ns);
	etrace_out_init(&out, text, sizeof(text));
	for (i = 0; i < n && good; i++) {
		size_t len = records[i].payload_bytes;
		char *payload = malloc(len); /* exactly as long: see take_page() */

		REQUIRE(payload);
		memcpy(payload, records[i].payload, len);
		good = etrace_record_text(&out, &prefix, payload, len);
		free(payload);
	}
	if (out.len <= out.size)
		check_lines(text, text + out.len);
	for (i = 0; i < n; i++)
		page_put(records[i].page);
}

static u64 n_pages; /* in use; none is left after a run */

static void take_page(size_t cpu, const uint8_t *data, size_t size)
{
	struct page *page = pool_get(&n_pages);
	/* of its own, so that AddressSanitizer sees a read after its end */
	char *bytes = malloc(size);
	struct page_cursor cursor;
	struct record_view view;
	enum page_result result;

	REQUIRE(bytes);
	memcpy(bytes, data, size);
	page_begin(&cursor, &layout, bytes, size);
	while ((result = page_next(&cursor, &view)) != PAGE_END && result != PAGE_DAMAGED) {
		struct held_record record = {
			.time_ns = view.time_ns,
			.upid = view.upid,
			.page = page,
			.cpu = view.cpu,
			.flags = view.flags,
			.payload_bytes = view.payload_bytes,
		};

		if (result != PAGE_RECORD || view.time_ns > INT64_MAX)
			continue;
		memcpy(page->data, bytes, size);
		record.payload = page->data + (view.payload - bytes);
		page_use(page);
		merge_add(cpu, &record);
	}
	page_put(page);
	free(bytes);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	pool_init(PAGE_BYTES);
	merge_init(N_CPUS);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct horizon all = { .before_ns = TIME_MAX, .patience_ns = TIME_MAX };
	size_t cpu = 0;

	while (size) {
		size_t part = size < PAGE_BYTES ? size : PAGE_BYTES;

		take_page(cpu, data, part);
		cpu = (cpu + 1) % N_CPUS;
		merge_emit((struct horizon){ .before_ns = data[0] * 1000u });
		data += part;
		size -= part;
	}
	merge_emit(all);
	merge_give_up();
	REQUIRE(pool_bytes() == 0);
	return 0;
}
