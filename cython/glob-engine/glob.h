/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Glob patterns with the meaning that fnmatch(pattern, string, 0) of glibc has in the C locale: on
 * bytes, `*` and `?` cross `/` and a leading period, `\` escapes, brackets as bracket.c says.
 *
 * Whatever is between two stars takes a fixed number of bytes, so a pattern is a list of
 * segments: one that begins the text, those between stars, each wanted at the first place after
 * the one before it, and one that ends the text. That needs no backtracking over stars.
 */
#ifndef ETRACE_GLOB_H
#define ETRACE_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that must be readable after a text. */
#define ETRACE_GLOB_PAD 32
#define GLOB_NO_LITERAL UINT32_MAX
/*
 * What a pattern may cost: each `[` that nothing closes is read to the end of the pattern, and an odd
 * pattern (below) is read again for each byte of a text.
 */
#define GLOB_OPEN_MAX 16
#define GLOB_ODD_BYTES_MAX 256

/* The bytes that one element of a segment accepts. */
struct glob_set {
	uint64_t words[4];
};

struct glob_segment {
	uint32_t at; /* of its first element */
	uint32_t len;
	uint32_t rare, second; /* offsets of its rarest two literals, GLOB_NO_LITERAL */
	bool plain; /* every element is a literal */
};

enum glob_kind {
	GLOB_NEVER, /* matches nothing: a trailing backslash, a bracket that accepts nothing */
	GLOB_EXACT, /* no star: one segment */
	GLOB_STARS, /* the first and the last of its segments may be empty */
	GLOB_ODD, /* where a bracket ends depends on the byte: see bracket.c */
};

struct glob {
	const uint8_t *text; /* the pattern, NUL after it */
	uint32_t first; /* of its segments */
	uint32_t n_segments;
	size_t min_len; /* of a text that it matches */
	uint32_t n_open; /* brackets that nothing closes */
	enum glob_kind kind;
};

struct globs {
	uint32_t n;
	uint32_t n_segments, n_elements, n_sets, sets_size;
	struct glob *globs;
	struct glob_segment *segments; /* equal plain ones are not shared */
	uint8_t *bytes; /* of elements; 0 for one that is not a literal */
	uint32_t *sets; /* of elements: 0 for a literal, else 1 + its place in `pool` */
	struct glob_set *pool;
	uint8_t *texts;
};

/*
 * Where the pattern goes on after the bracket that opened before `start`, when it accepts `c`; NULL
 * when it does not. `start` itself: the bracket never ends, so its `[` stands for itself.
 */
const uint8_t *glob_bracket(const uint8_t *start, uint8_t c);

/*
 * Work is counted in steps of some nanoseconds. Every so many of them `glob_interrupted`, when there
 * is one, says whether to give up; from then on this thread finds nothing until glob_begin().
 */
struct glob_pulse {
	int64_t left;
	bool stopped;
};

#define GLOB_PULSE_STEPS (1 << 20)
extern int (*glob_interrupted)(void);
extern _Thread_local struct glob_pulse glob_pulse __attribute__((tls_model("initial-exec")));

static inline void glob_begin(void)
{
	glob_pulse = (struct glob_pulse){ GLOB_PULSE_STEPS, false };
}

bool glob_ask(void);

/* Count work; whether to go on. */
static inline bool glob_work(size_t steps)
{
	glob_pulse.left -= (int64_t)steps;
	return __builtin_expect(glob_pulse.left > 0, 1) || glob_ask();
}

/*
 * Compile patterns without NUL bytes. 0, -ENOMEM, -EINTR, for pattern `n - 1` -E2BIG (more than
 * GLOB_OPEN_MAX brackets that nothing closes) or -ENAMETOOLONG (odd and longer than
 * GLOB_ODD_BYTES_MAX); destroy them then as well.
 */
int globs_init(struct globs *globs, const uint8_t *const *patterns, const size_t *lens, uint32_t n);
void globs_deinit(struct globs *globs);

/* Whether the elements of a segment accept the bytes at `text`; there must be enough of them. */
bool glob_segment_at(const struct globs *globs, const struct glob_segment *segment,
		     const uint8_t *text);

/* First place in [text, last] where a segment is; NULL when there is none. */
const uint8_t *glob_find(const struct globs *globs, const struct glob_segment *segment,
			 const uint8_t *text, const uint8_t *last);

/* Whether a pattern matches a text, which has ETRACE_GLOB_PAD readable bytes after it. */
bool glob_match(const struct globs *globs, const struct glob *glob, const uint8_t *text,
		size_t len);

/* ---- rows of argv, as the database image has them, against all patterns ---- */

/* The text of row i is its strings arguments[argv[i]..argv[i + 1]), one space between. */
struct rows {
	const uint64_t *strings; /* n_strings + 1 offsets in `bytes` */
	uint64_t n_strings;
	const uint8_t *bytes;
	uint64_t n_bytes;
	const uint64_t *argv; /* n + 1 offsets in `arguments` */
	uint64_t n;
	const uint32_t *arguments;
	uint64_t n_arguments;
};

/*
 * Set the bits of each row in `bits`, ceil(n patterns / 8) bytes a row, all zero before. 0, -ENOMEM,
 * -EINVAL for an offset out of order or range, -EOVERFLOW for a row of 4 GiB, -EINTR.
 */
int match_rows(const struct globs *globs, const struct rows *rows, uint8_t *bits);

#endif /* ETRACE_GLOB_H */
