// SPDX-License-Identifier: Apache-2.0
/*
 * Bracket expressions as fnmatch(3) of glibc reads them in the C locale. Its two readings of the
 * members, before and after one of them accepted the byte, differ where a bracket is ill-formed:
 * `[a[:x]]` ends at the first `]` for one byte and at the second for another. So a bracket is read
 * for each byte again. Found by differential tests (tests/fuzz/fuzz_patterns.c), 2.36.
 */
#include "glob.h"

#include <ctype.h>
#include <string.h>

#define CLASS_NAME_MAX 256

enum member {
	MEMBER_MISSES,
	MEMBER_ACCEPTS,
	MEMBER_ILL_FORMED,
	MEMBER_OPEN, /* the pattern ends */
};

struct class {
	const char *name;
	int (*accepts)(int c);
};

static bool is_between(uint8_t c, uint8_t low, uint8_t high)
{
	return low <= c && c <= high;
}

/* ASCII bytes are in the same classes in every locale of glibc. */
static const struct class classes[] = {
	{ "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank }, { "cntrl", iscntrl },
	{ "digit", isdigit }, { "graph", isgraph }, { "lower", islower }, { "print", isprint },
	{ "punct", ispunct }, { "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit },
};

static const struct class *find_class(const uint8_t *name, size_t len)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
		if (strlen(classes[i].name) == len && !memcmp(classes[i].name, name, len))
			return &classes[i];
	return NULL;
}

/*
 * Length of the name that begins at `name` and ends at ":]"; -1 when it cannot be one, -2 when it is
 * too long. No class has a z in its name, and glibc takes none.
 */
static int class_name_len(const uint8_t *name, int max)
{
	for (int len = 0; len < max; len++) {
		if (name[len] == ':' && name[len + 1] == ']')
			return len;
		if (!is_between(name[len], 'a', 'y'))
			return -1;
	}
	return -2;
}

/* The byte that [.x.] names, with *at after its "[."; -1 when it names none. */
static int collating_byte(const uint8_t **at)
{
	const uint8_t *name = *at;
	const uint8_t *end = name;

	while (*end && !(end[0] == '.' && end[1] == ']'))
		end++;
	if (!*end || end - name != 1)
		return -1;
	*at = end + 2;
	return *name;
}

/* The upper end of a range, with *at after its '-'; -1 when it is ill-formed. */
static int range_end(const uint8_t **at)
{
	int c = *(*at)++;

	if (c == '[' && **at == '.') {
		(*at)++;
		return collating_byte(at);
	}
	if (c == '\\')
		c = *(*at)++;
	return c ? c : -1;
}

/* A single byte or the range that it begins; *at moves past it. `is_range`: it is not asked alone. */
static enum member read_range(const uint8_t **at, uint8_t low, bool is_range, uint8_t c)
{
	int high;

	if (!is_range && low == c)
		return MEMBER_ACCEPTS;
	if ((*at)[0] != '-' || (*at)[1] == ']')
		return MEMBER_MISSES;
	(*at)++;
	high = range_end(at);
	if (high < 0)
		return MEMBER_ILL_FORMED;
	return is_between(c, low, (uint8_t)high) ? MEMBER_ACCEPTS : MEMBER_MISSES;
}

static enum member read_byte(const uint8_t **at, uint8_t low, uint8_t c)
{
	const uint8_t *p = *at;

	return read_range(at, low, p[0] == '-' && p[1] && p[1] != ']', c);
}

static enum member read_collating(const uint8_t **at, uint8_t c)
{
	int low;

	*at += 2;
	low = collating_byte(at);
	if (low < 0)
		return MEMBER_ILL_FORMED;
	return read_range(at, (uint8_t)low, (*at)[0] == '-' && (*at)[1], c);
}

static enum member read_class(const uint8_t **at, uint8_t c)
{
	const uint8_t *name = *at + 2;
	int len = class_name_len(name, CLASS_NAME_MAX);
	const struct class *class;

	if (len == -1) {
		(*at)++;
		return read_byte(at, '[', c);
	}
	class = len < 0 ? NULL : find_class(name, (size_t)len);
	if (!class)
		return MEMBER_ILL_FORMED;
	*at = name + len + 2;
	return c < 0x80 && class->accepts(c) ? MEMBER_ACCEPTS : MEMBER_MISSES;
}

static bool is_equivalence(const uint8_t *p)
{
	return p[0] == '[' && p[1] == '=' && p[2] && p[3] == '=' && p[4] == ']';
}

/* The next member, as long as none accepted `c`; *at moves past it. */
static enum member read_member(const uint8_t **at, uint8_t c)
{
	const uint8_t *p = *at;

	if (!*p)
		return MEMBER_OPEN;
	if (p[0] == '[' && p[1] == ':')
		return read_class(at, c);
	if (p[0] == '[' && p[1] == '.')
		return read_collating(at, c);
	if (is_equivalence(p)) {
		*at += 5;
		return p[2] == c ? MEMBER_ACCEPTS : MEMBER_MISSES;
	}
	if (*p == '\\' && !*++p)
		return MEMBER_ILL_FORMED;
	*at = p + 1;
	return read_byte(at, *p, c);
}

static enum member skip_class(const uint8_t **at)
{
	int len = class_name_len(*at + 2, CLASS_NAME_MAX - 1);

	if (len == -2)
		return MEMBER_ILL_FORMED;
	*at += len < 0 ? 1 : len + 4;
	return MEMBER_MISSES;
}

static enum member skip_collating(const uint8_t **at)
{
	const uint8_t *p = *at + 2;

	while (*p && !(p[0] == '.' && p[1] == ']'))
		p++;
	if (!*p)
		return MEMBER_ILL_FORMED;
	*at = p + 2;
	return MEMBER_MISSES;
}

/* The next member, after one accepted. */
static enum member skip_member(const uint8_t **at)
{
	const uint8_t *p = *at;

	if (!*p)
		return MEMBER_OPEN;
	if (p[0] == '[' && p[1] == ':')
		return skip_class(at);
	if (p[0] == '[' && p[1] == '.')
		return skip_collating(at);
	if (p[0] == '[' && p[1] == '=') {
		*at += 5;
		return is_equivalence(p) ? MEMBER_MISSES : MEMBER_ILL_FORMED;
	}
	if (*p == '\\' && !*++p)
		return MEMBER_ILL_FORMED;
	*at = p + 1;
	return MEMBER_MISSES;
}

/* *at: after the member that accepted. Where the bracket ends, or what it is instead. */
static enum member skip_members(const uint8_t **at)
{
	enum member member = MEMBER_MISSES;

	while (member == MEMBER_MISSES && **at != ']')
		member = skip_member(at);
	return member;
}

const uint8_t *glob_bracket(const uint8_t *start, uint8_t c)
{
	bool negated = *start == '!' || *start == '^';
	const uint8_t *at = start + negated;
	enum member member;
	bool accepts;

	do
		member = read_member(&at, c);
	while (member == MEMBER_MISSES && *at != ']');
	accepts = member == MEMBER_ACCEPTS;
	if (accepts)
		member = skip_members(&at);
	if (member == MEMBER_OPEN)
		return c == '[' ? start : NULL;
	if (member == MEMBER_ILL_FORMED)
		return NULL;
	return accepts != negated ? at + 1 : NULL;
}
