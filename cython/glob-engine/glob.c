// SPDX-License-Identifier: Apache-2.0
/* Patterns to segments, and one pattern against one text. Reads memory only; any thread. */
#include "glob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The bytes of command lines, common ones first; what is missing is rare. */
static const char common_bytes[] = "/ eatrsnoilc-dumpg_.bIhfvk=wyLD0x1S2ETACR3NO5P4MBz68F7jqUGHV9KW,\"J+:XY";

static uint32_t commonness(uint8_t byte)
{
	const char *at = memchr(common_bytes, byte, sizeof(common_bytes) - 1);

	return at ? (uint32_t)(sizeof(common_bytes) - (size_t)(at - common_bytes)) : 0;
}

static bool set_has(const struct glob_set *set, uint8_t byte)
{
	return set->words[byte / 64] >> byte % 64 & 1;
}

/* ---- work ---- */

int (*glob_interrupted)(void);
_Thread_local struct glob_pulse glob_pulse;

bool glob_ask(void)
{
	if (!glob_pulse.stopped && glob_interrupted && glob_interrupted())
		glob_pulse.stopped = true;
	if (!glob_pulse.stopped)
		glob_pulse.left = GLOB_PULSE_STEPS;
	return !glob_pulse.stopped;
}

/* ---- compile ---- */

static int add_set(struct globs *globs, const struct glob_set *set)
{
	uint32_t size = globs->sets_size ? globs->sets_size * 2 : 16;
	struct glob_set *pool = globs->pool;

	if (globs->n_sets == globs->sets_size) {
		pool = realloc(pool, size * sizeof(*pool));
		if (!pool)
			return -ENOMEM;
		globs->pool = pool;
		globs->sets_size = size;
	}
	pool[globs->n_sets++] = *set;
	return 0;
}

static void add_literal(struct globs *globs, uint8_t byte)
{
	globs->bytes[globs->n_elements] = byte;
	globs->sets[globs->n_elements++] = 0;
}

static int add_element(struct globs *globs, const struct glob_set *set)
{
	int status = add_set(globs, set);

	globs->bytes[globs->n_elements] = 0;
	globs->sets[globs->n_elements++] = globs->n_sets;
	return status;
}

/*
 * Compile a bracket, with *at after its '['. An odd one goes on in different places for different bytes;
 * one that accepts a single byte is a literal.
 */
static int add_bracket(struct globs *globs, struct glob *glob, const uint8_t **at)
{
	struct glob_set set = { { 0 } };
	const uint8_t *start = *at, *after = NULL;
	unsigned int n = 0, last = 0;

	for (unsigned int c = 1; c < 256; c++) {
		const uint8_t *next = glob_bracket(start, (uint8_t)c);

		if (!next)
			continue;
		if (after && next != after)
			glob->kind = GLOB_ODD;
		after = next;
		set.words[c / 64] |= (uint64_t)1 << c % 64;
		last = c;
		n++;
	}
	*at = after;
	if (after == start && ++glob->n_open > GLOB_OPEN_MAX)
		return -E2BIG;
	if (n == 0)
		glob->kind = GLOB_NEVER;
	if (n != 1)
		return add_element(globs, &set);
	add_literal(globs, (uint8_t)last);
	return 0;
}

/* Note the two rarest literals of a segment: glob_find() looks for them. */
static void choose_literals(const struct globs *globs, struct glob_segment *segment)
{
	uint32_t best = UINT32_MAX, next = UINT32_MAX;

	segment->plain = true;
	segment->rare = GLOB_NO_LITERAL;
	segment->second = GLOB_NO_LITERAL;
	for (uint32_t i = 0; i < segment->len; i++) {
		uint32_t score = commonness(globs->bytes[segment->at + i]);

		if (globs->sets[segment->at + i]) {
			segment->plain = false;
		} else if (score < best) {
			next = best;
			segment->second = segment->rare;
			best = score;
			segment->rare = i;
		} else if (score < next) {
			next = score;
			segment->second = i;
		}
	}
}

static void end_segment(struct globs *globs, struct glob *glob)
{
	struct glob_segment *segment = &globs->segments[glob->first + glob->n_segments];

	segment->len = globs->n_elements - segment->at;
	choose_literals(globs, segment);
	glob->min_len += segment->len;
	glob->n_segments++;
	segment[1].at = globs->n_elements;
}

/* A star: neighbouring ones are one. */
static void add_star(struct globs *globs, struct glob *glob)
{
	const struct glob_segment *segment = &globs->segments[glob->first + glob->n_segments];

	if (glob->n_segments == 0 || globs->n_elements > segment->at)
		end_segment(globs, glob);
	glob->kind = GLOB_STARS;
}

static int add_next(struct globs *globs, struct glob *glob, const uint8_t **at)
{
	static const struct glob_set any = { { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX } };
	uint8_t c = *(*at)++;

	switch (c) {
	case '*':
		add_star(globs, glob);
		return 0;
	case '?':
		return add_element(globs, &any);
	case '[':
		return add_bracket(globs, glob, at);
	case '\\':
		c = **at;
		if (!c) {
			glob->kind = GLOB_NEVER;
			return 0;
		}
		(*at)++;
		/* fallthrough */
	default:
		add_literal(globs, c);
		return 0;
	}
}

/* What a bracket costs: it is asked for each byte that there is. */
#define GLOB_STEPS_PER_BYTE 64

static int add_glob(struct globs *globs, struct glob *glob, size_t len)
{
	const uint8_t *at = glob->text;
	int status = 0;

	glob->kind = GLOB_EXACT;
	glob->first = globs->n_segments;
	globs->segments[glob->first].at = globs->n_elements;
	while (!status && *at) {
		status = add_next(globs, glob, &at);
		if (glob->kind == GLOB_ODD || glob->kind == GLOB_NEVER)
			break;
	}
	end_segment(globs, glob);
	globs->n_segments += glob->n_segments;
	if (glob->kind == GLOB_ODD && len > GLOB_ODD_BYTES_MAX)
		return -ENAMETOOLONG;
	return status || glob_work(len * GLOB_STEPS_PER_BYTE) ? status : -EINTR;
}

/* Room for all: an element or a star takes a byte of a pattern at least. */
static int allocate(struct globs *globs, size_t n_bytes, uint32_t n)
{
	if (n_bytes > UINT32_MAX / 8 || n > UINT32_MAX / 8)
		return -ENOMEM;
	globs->globs = calloc((size_t)n + 1, sizeof(*globs->globs));
	globs->segments = calloc(n_bytes + 2 * (size_t)n + 2, sizeof(*globs->segments));
	globs->bytes = malloc(n_bytes + n + 1);
	globs->sets = malloc((n_bytes + n + 1) * sizeof(*globs->sets));
	globs->texts = malloc(n_bytes + n + 1);
	return globs->globs && globs->segments && globs->bytes && globs->sets && globs->texts ?
		       0 : -ENOMEM;
}

int globs_init(struct globs *globs, const uint8_t *const *patterns, const size_t *lens, uint32_t n)
{
	size_t n_bytes = 0;
	uint8_t *text;
	int status;

	memset(globs, 0, sizeof(*globs));
	for (uint32_t i = 0; i < n; i++)
		n_bytes += lens[i];
	status = allocate(globs, n_bytes, n);
	text = globs->texts;
	for (; !status && globs->n < n; globs->n++) {
		globs->globs[globs->n].text = text;
		memcpy(text, patterns[globs->n], lens[globs->n]);
		text += lens[globs->n];
		*text++ = 0;
		status = add_glob(globs, &globs->globs[globs->n], lens[globs->n]);
	}
	return status;
}

void globs_deinit(struct globs *globs)
{
	free(globs->globs);
	free(globs->segments);
	free(globs->bytes);
	free(globs->sets);
	free(globs->pool);
	free(globs->texts);
	memset(globs, 0, sizeof(*globs));
}

/* ---- match ---- */

bool glob_segment_at(const struct globs *globs, const struct glob_segment *segment,
		     const uint8_t *text)
{
	const uint8_t *bytes = globs->bytes + segment->at;
	const uint32_t *sets = globs->sets + segment->at;

	if (segment->plain)
		return !memcmp(text, bytes, segment->len);
	for (uint32_t i = 0; i < segment->len; i++)
		if (sets[i] ? !set_has(&globs->pool[sets[i] - 1], text[i]) : text[i] != bytes[i])
			return false;
	return true;
}

static const uint8_t *find_everywhere(const struct globs *globs, const struct glob_segment *segment,
				      const uint8_t *text, const uint8_t *last)
{
	for (; text <= last && glob_work(segment->len + 1); text++)
		if (glob_segment_at(globs, segment, text))
			return text;
	return NULL;
}

static const uint8_t *find_one_literal(const struct globs *globs,
				       const struct glob_segment *segment, const uint8_t *text,
				       const uint8_t *last)
{
	uint8_t byte = globs->bytes[segment->at + segment->rare];

	while (text <= last) {
		text = memchr(text + segment->rare, byte, (size_t)(last - text) + 1);
		if (!text)
			return NULL;
		text -= segment->rare;
		if (!glob_work(segment->len))
			return NULL;
		if (glob_segment_at(globs, segment, text))
			return text;
		text++;
	}
	return NULL;
}

#ifdef __SSE2__
/* Places among the 16 at `text` where both literals are. */
static unsigned int both_literals(const struct glob_segment *segment, const uint8_t *text,
				  __m128i rare, __m128i second)
{
	__m128i a = _mm_loadu_si128((const __m128i *)(text + segment->rare));
	__m128i b = _mm_loadu_si128((const __m128i *)(text + segment->second));

	return (unsigned int)_mm_movemask_epi8(
		_mm_and_si128(_mm_cmpeq_epi8(a, rare), _mm_cmpeq_epi8(b, second)));
}

static const uint8_t *find_two_literals(const struct globs *globs,
					const struct glob_segment *segment, const uint8_t *text,
					const uint8_t *last)
{
	const uint8_t *bytes = globs->bytes + segment->at;
	const __m128i rare = _mm_set1_epi8((char)bytes[segment->rare]);
	const __m128i second = _mm_set1_epi8((char)bytes[segment->second]);

	for (; text <= last; text += 16) {
		unsigned int hits = both_literals(segment, text, rare, second);

		for (; hits; hits &= hits - 1) {
			const uint8_t *at = text + __builtin_ctz(hits);

			if (at > last || !glob_work(1 + segment->len / 16))
				return NULL;
			if (glob_segment_at(globs, segment, at))
				return at;
		}
	}
	return NULL;
}
#else
#define find_two_literals find_one_literal
#endif

const uint8_t *glob_find(const struct globs *globs, const struct glob_segment *segment,
			 const uint8_t *text, const uint8_t *last)
{
	if (segment->rare == GLOB_NO_LITERAL)
		return find_everywhere(globs, segment, text, last);
	if (segment->second == GLOB_NO_LITERAL)
		return find_one_literal(globs, segment, text, last);
	return find_two_literals(globs, segment, text, last);
}

static bool match_stars(const struct globs *globs, const struct glob *glob, const uint8_t *text,
			size_t len)
{
	const struct glob_segment *segment = globs->segments + glob->first;
	const struct glob_segment *last = segment + glob->n_segments - 1;
	const uint8_t *end = text + len - last->len;

	if (!glob_segment_at(globs, segment, text) || !glob_segment_at(globs, last, end))
		return false;
	text += segment->len;
	while (++segment < last) {
		if ((size_t)(end - text) < segment->len)
			return false;
		text = glob_find(globs, segment, text, end - segment->len);
		if (!text)
			return false;
		text += segment->len;
	}
	return true;
}

enum walk { WALK_FAILS, WALK_MATCHES, WALK_STARS };

/* Follow an odd pattern over a text; *pattern and *text are moved to the next star if it gets there. */
static enum walk walk(const uint8_t **pattern, const uint8_t **text, const uint8_t *end)
{
	const uint8_t *p = *pattern;
	const uint8_t *t = *text;

	for (; *p && *p != '*'; t++) {
		uint8_t c = *p++;

		if (t == end)
			return WALK_FAILS;
		if (c == '[')
			p = glob_work(GLOB_STEPS_PER_BYTE) ? glob_bracket(p, *t) : NULL;
		else if (c == '\\' ? !*p || *p++ != *t : c != '?' && c != *t)
			return WALK_FAILS;
		if (!p)
			return WALK_FAILS;
	}
	if (!*p)
		return t == end ? WALK_MATCHES : WALK_FAILS;
	*pattern = p;
	*text = t;
	return WALK_STARS;
}

/* From the star at *pattern to the next one, where fnmatch(3) does not backtrack either. */
static enum walk walk_star(const uint8_t **pattern, const uint8_t **text, const uint8_t *end)
{
	for (; **pattern == '*' || **pattern == '?'; (*pattern)++)
		if (**pattern == '?' && (*text)++ == end)
			return WALK_FAILS;
	if (!**pattern)
		return WALK_MATCHES;
	for (const uint8_t *at = *text; at < end; at++) {
		enum walk found;

		*text = at;
		found = glob_work(1) ? walk(pattern, text, end) : WALK_FAILS;
		if (found != WALK_FAILS)
			return found;
	}
	return WALK_FAILS;
}

static bool match_odd(const uint8_t *pattern, const uint8_t *text, const uint8_t *end)
{
	enum walk found = walk(&pattern, &text, end);

	while (found == WALK_STARS)
		found = walk_star(&pattern, &text, end);
	return found == WALK_MATCHES;
}

bool glob_match(const struct globs *globs, const struct glob *glob, const uint8_t *text, size_t len)
{
	if (!glob_work(1))
		return false;
	if (glob->kind == GLOB_ODD)
		return match_odd(glob->text, text, text + len);
	if (glob->kind == GLOB_NEVER || len < glob->min_len)
		return false;
	if (glob->kind == GLOB_STARS)
		return match_stars(globs, glob, text, len);
	return len == glob->min_len &&
	       glob_segment_at(globs, &globs->segments[glob->first], text);
}
