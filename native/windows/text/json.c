// SPDX-License-Identifier: Apache-2.0
/* Text -> JSON. Source: RFC 8259, section 7. */
#include "json.h"

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
