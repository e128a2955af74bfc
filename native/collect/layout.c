// SPDX-License-Identifier: Apache-2.0
/*
 * What tracefs says about pages and records: `events/header_page`, `events/header_event`, and the
 * `id` and `format` of the trace event. The layout is read, not assumed: it differs between kernels
 * (page size, sub-buffers since Linux 6.8) and the module may get fields.
 */
#include "layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect.h"

#define EVENT_DIR "events/etrace/etrace_record/"
#define TEXT_MAX 16384
#define PAGE_BYTES_MAX (16u << 20)

struct text {
	const char *file;
	const char *instance;
	char bytes[TEXT_MAX];
};

static void explain_missing(const struct text *text, int error)
{
	if (error == ENOENT && !strncmp(text->file, EVENT_DIR, strlen(EVENT_DIR)))
		die("'%s' has no trace event etrace_record: load the kernel module (modprobe "
		    "etrace), or for --raw save %s as well", text->instance, text->file);
	die("cannot read '%s/%s': %s", text->instance, text->file, strerror(error));
}

static void read_text(struct text *text, int instance)
{
	int fd = openat(instance, text->file, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	if (fd < 0)
		explain_missing(text, errno);
	while (len < TEXT_MAX - 1 && (n = read(fd, text->bytes + len, TEXT_MAX - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		explain_missing(text, errno);
	text->bytes[len] = '\0';
	close(fd);
}

static void refuse(const struct text *text, const char *what) __attribute__((noreturn));

static void refuse(const struct text *text, const char *what)
{
	die("'%s/%s' does not give %s: this etrace_cat does not know this kernel's ring buffer " 
	    "format; read trace_pipe instead (etrace_cat %s/trace_pipe)", text->instance,
	    text->file, what, text->instance);
}

/* The number behind `key` on a line of its own that begins with it; refuse() without. */
static unsigned long number_at(const struct text *text, const char *key)
{
	const char *at = text->bytes;
	size_t len = strlen(key);

	for (; at; at = strchr(at, '\n')) {
		at += strspn(at, "\n\t ");
		if (!strncmp(at, key, len)) {
			at += len;
			at += strcspn(at, "0123456789\n");
			if (*at >= '0' && *at <= '9')
				return strtoul(at, NULL, 10);
		}
	}
	refuse(text, key);
}

static void check_entries(int instance, const char *name)
{
	static const struct {
		const char *key;
		unsigned long value;
	} expected[] = {
		{ "type_len", 5 },	{ "time_delta", 27 }, { "array", 32 },
		{ "padding", 29 },	{ "time_extend", 30 }, { "time_stamp", 31 },
		{ "data max type_len", 28 },
	};
	struct text text = { .file = "events/header_event", .instance = name };
	size_t i;

	read_text(&text, instance);
	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		if (number_at(&text, expected[i].key) != expected[i].value)
			refuse(&text, expected[i].key);
}

/* `field:TYPE NAME;	offset:N;	size:N;`, NAME perhaps with brackets. */
static struct field field_at(const struct text *text, const char *name)
{
	struct field field;
	const char *at = text->bytes;
	size_t len = strlen(name);

	while ((at = strstr(at, "field:"))) {
		const char *end = strchr(at, ';');

		if (!end)
			break;
		if ((size_t)(end - at) > len && !memcmp(end - len, name, len) &&
		    end[-(ptrdiff_t)len - 1] == ' ' &&
		    sscanf(end, "; offset:%u; size:%u;", &field.offset, &field.bytes) == 2)
			return field;
		at = end;
	}
	refuse(text, name);
}

/* The offset of a field of a record, which then reaches to its end at least. */
static u32 sized(struct page_layout *layout, const struct text *text, const char *name, u32 bytes)
{
	struct field field = field_at(text, name);

	if (field.bytes != bytes || field.offset > 4096)
		refuse(text, name);
	if (layout->record_bytes < field.offset + bytes)
		layout->record_bytes = field.offset + bytes;
	return field.offset;
}

static void read_page_header(struct page_layout *layout, int instance, const char *name)
{
	struct text text = { .file = "events/header_page", .instance = name };
	struct field data;

	read_text(&text, instance);
	data = field_at(&text, "data");
	layout->commit = field_at(&text, "commit");
	layout->data_offset = data.offset;
	layout->page_bytes = data.offset + data.bytes;
	if (layout->commit.bytes != sizeof(u32) && layout->commit.bytes != sizeof(u64))
		refuse(&text, "commit");
	if (data.offset < layout->commit.offset + layout->commit.bytes || data.offset > 4096 ||
	    data.bytes < 64 || data.bytes > PAGE_BYTES_MAX)
		refuse(&text, "data");
}

static void read_record_format(struct page_layout *layout, int instance, const char *name)
{
	struct text text = { .file = EVENT_DIR "format", .instance = name };

	read_text(&text, instance);
	layout->record_bytes = 0;
	layout->common_type = sized(layout, &text, "common_type", sizeof(u16));
	layout->upid = sized(layout, &text, "upid", sizeof(s64));
	layout->time_ns = sized(layout, &text, "time_ns", sizeof(u64));
	layout->cpu = sized(layout, &text, "cpu", sizeof(u16));
	layout->flags = sized(layout, &text, "flags", sizeof(u16));
	layout->payload = sized(layout, &text, "payload", sizeof(u32));
}

static void read_record_type(struct page_layout *layout, int instance, const char *name)
{
	struct text text = { .file = EVENT_DIR "id", .instance = name };

	read_text(&text, instance);
	layout->type = (u32)strtoul(text.bytes, NULL, 10);
	if (layout->type == 0)
		refuse(&text, "the event's number");
}

void layout_read(struct page_layout *layout, int instance, const char *name)
{
	read_page_header(layout, instance, name);
	check_entries(instance, name);
	read_record_format(layout, instance, name);
	read_record_type(layout, instance, name);
}
