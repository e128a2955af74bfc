// SPDX-License-Identifier: Apache-2.0
/* A call of a program -> an item of the build spec. JSON as in RFC 8259, section 7. */
#include "spec.h"

#include "wtf8.h"

static void put_escape(struct buffer *out, uint32_t unit)
{
	static const char digits[] = "0123456789abcdef";

	buffer_add(out, LITERAL("\\u"));
	for (int shift = 12; shift >= 0; shift -= 4)
		buffer_add_char(out, digits[unit >> shift & 0xF]);
}

static void put_ascii(struct buffer *out, char c)
{
	static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *found = c ? strchr(named, c) : NULL;

	if (found) {
		buffer_add_char(out, '\\');
		buffer_add_char(out, letters[found - named]);
	} else if ((unsigned char)c < ' ') {
		put_escape(out, (unsigned char)c);
	} else {
		buffer_add_char(out, c);
	}
}

void json_string(struct buffer *out, struct text text)
{
	buffer_add_char(out, '"');
	while (text.len) {
		struct code code = wtf8_decode(text);
		size_t len = code.len ? code.len : 1;

		if (!code.len)
			put_escape(out, 0xDC00 | code.point);
		else if (code.len == 1)
			put_ascii(out, text.data[0]);
		else if (is_surrogate(code.point))
			put_escape(out, code.point);
		else
			buffer_add(out, text.data, len);
		text.data += len;
		text.len -= len;
	}
	buffer_add_char(out, '"');
}

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
