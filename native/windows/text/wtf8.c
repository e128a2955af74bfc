// SPDX-License-Identifier: Apache-2.0
/* UTF-16 <-> WTF-8. Source of the bit layout: RFC 3629, section 3. */
#include "wtf8.h"

#define HIGH_FIRST 0xD800
#define LOW_FIRST 0xDC00
#define FIRST_OF_PAIRS 0x10000
#define LAST_POINT 0x10FFFF
#define REPLACEMENT 0xFFFD

static bool is_high(uint32_t unit)
{
	return unit >= HIGH_FIRST && unit < LOW_FIRST;
}

static bool is_low(uint32_t unit)
{
	return unit >= LOW_FIRST && is_surrogate(unit);
}

static void put_point(struct buffer *out, uint32_t point)
{
	unsigned char bytes[4];
	size_t n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < FIRST_OF_PAIRS ? 3 : 4;
	static const unsigned char first[] = { 0, 0x00, 0xC0, 0xE0, 0xF0 };

	for (size_t i = n - 1; i > 0; i--) {
		bytes[i] = 0x80 | (point & 0x3F);
		point >>= 6;
	}
	bytes[0] = (unsigned char)(first[n] | point);
	buffer_add(out, bytes, n);
}

void wtf8_from_utf16(struct buffer *out, const uint16_t *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint32_t point = text[i];

		if (is_high(point) && i + 1 < len && is_low(text[i + 1]))
			point = FIRST_OF_PAIRS + ((point - HIGH_FIRST) << 10) +
				(text[++i] - LOW_FIRST);
		put_point(out, point);
	}
}

struct code wtf8_decode(struct text text)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, FIRST_OF_PAIRS };
	unsigned char first = (unsigned char)text.data[0];
	size_t n = first < 0x80 ? 1 : first < 0xC0 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 :
		   first < 0xF8 ? 4 : 0;
	uint32_t point = n < 2 ? first : first & (0x7F >> n);

	if (!n || n > text.len)
		return (struct code){ first, 0 };
	for (size_t i = 1; i < n; i++) {
		unsigned char next = (unsigned char)text.data[i];

		if ((next & 0xC0) != 0x80)
			return (struct code){ first, 0 };
		point = point << 6 | (next & 0x3F);
	}
	if (point < least[n] || point > LAST_POINT)
		return (struct code){ first, 0 };
	return (struct code){ point, n };
}

static void put_unit(struct buffer *out, uint32_t unit)
{
	uint16_t value = (uint16_t)unit;

	buffer_add(out, &value, sizeof(value));
}

void wtf8_to_utf16(struct buffer *out, struct text text)
{
	while (text.len) {
		struct code code = wtf8_decode(text);
		uint32_t point = code.len ? code.point : REPLACEMENT;
		size_t len = code.len ? code.len : 1;

		if (point >= FIRST_OF_PAIRS) {
			put_unit(out, HIGH_FIRST + ((point - FIRST_OF_PAIRS) >> 10));
			put_unit(out, LOW_FIRST + ((point - FIRST_OF_PAIRS) & 0x3FF));
		} else {
			put_unit(out, point);
		}
		text.data += len;
		text.len -= len;
	}
}

static void from_utf16_file(struct buffer *out, const unsigned char *bytes, size_t len, bool is_big)
{
	struct buffer units = { 0 };

	for (size_t i = 0; i + 1 < len; i += 2)
		put_unit(&units, is_big ? bytes[i] << 8 | bytes[i + 1] :
					  bytes[i + 1] << 8 | bytes[i]);
	if (units.len)
		wtf8_from_utf16(out, (const uint16_t *)(void *)units.data, units.len / 2);
	buffer_free(&units);
}

void wtf8_from_file(struct buffer *out, struct text content)
{
	const unsigned char *bytes = (const unsigned char *)content.data;
	size_t len = content.len;

	if (len >= 3 && !memcmp(bytes, "\xEF\xBB\xBF", 3))
		buffer_add(out, bytes + 3, len - 3);
	else if (len >= 2 && bytes[0] == 0xFF && bytes[1] == 0xFE)
		from_utf16_file(out, bytes + 2, len - 2, false);
	else if (len >= 2 && bytes[0] == 0xFE && bytes[1] == 0xFF)
		from_utf16_file(out, bytes + 2, len - 2, true);
	else
		buffer_add(out, bytes, len);
}
