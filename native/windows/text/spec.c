// SPDX-License-Identifier: Apache-2.0
/* A call of a program -> an item of the build spec. */
#include "spec.h"

#include "json.h"

static void put_key(struct buffer *out, const char *key)
{
	buffer_add_text(out, text_of("  \""));
	buffer_add_text(out, text_of(key));
	buffer_add_text(out, text_of("\": "));
}

static void put_number(struct buffer *out, const char *key, unsigned long number)
{
	put_key(out, key);
	buffer_add_char(out, '"');
	buffer_add_number(out, number);
	buffer_add_text(out, text_of("\",\n"));
}

static void put_string(struct buffer *out, const char *key, struct text text)
{
	put_key(out, key);
	json_string(out, text);
}

static void put_list(struct buffer *out, const char *key, const struct words *words)
{
	size_t n = words_count(words);

	put_key(out, key);
	buffer_add_char(out, '[');
	for (size_t i = 0; i < n; i++) {
		if (i)
			buffer_add_char(out, ',');
		json_string(out, words_at(words, i));
	}
	buffer_add_char(out, ']');
}

void spec_put(struct buffer *out, const struct spec_item *item, bool is_debug, bool is_first)
{
	buffer_add_text(out, text_of(is_first ? "[\n{\n" : ",\n{\n"));
	if (is_debug) {
		put_number(out, "pid", item->pid);
		put_number(out, "ppid", item->parent);
		put_string(out, "function", text_of("CreateProcess"));
		buffer_add_text(out, text_of(",\n"));
	}
	put_string(out, "directory", item->directory);
	buffer_add_text(out, text_of(",\n"));
	put_list(out, "arguments", item->arguments);
	if (item->has_response || is_debug) {
		buffer_add_text(out, text_of(",\n"));
		put_string(out, "respfile", item->response);
	}
	if (is_debug) {
		buffer_add_text(out, text_of(",\n"));
		put_key(out, "isKnown");
		buffer_add_char(out, item->is_known ? '1' : '0');
	}
	buffer_add_text(out, text_of("\n}\n"));
}

void spec_end(struct buffer *out, bool is_empty)
{
	buffer_add_text(out, text_of(is_empty ? "[\n]\n" : "]\n"));
}
