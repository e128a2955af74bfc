// SPDX-License-Identifier: Apache-2.0
/*
 * Which programs read response files, by the names of etrace/compilers, and the files that a command
 * names, on its command line and in these files. Each file is taken once and their number has a
 * limit, for a file may name itself, a hundred thousand times. Part of the preload library too:
 * nothing of libc is used, and nothing is allocated.
 */
#include "capture/named.h"

#include "capture/tool_names.h"

/* ---- tools ---- */

/* As strcmp(), of a text with a length and one with an end. */
static int compare(const char *text, size_t len, const char *name)
{
	size_t i;

	for (i = 0; i < len && text[i] == name[i] && name[i]; i++)
		;
	return (i < len ? (unsigned char)text[i] : 0) - (unsigned char)name[i];
}

static bool is_listed(const char *text, size_t len)
{
	size_t first = 0;
	size_t end = N_TOOL_NAMES;

	while (first < end) {
		size_t middle = first + (end - first) / 2;
		int order = compare(text, len, tool_names[middle]);

		if (!order)
			return len > 0;
		if (order < 0)
			end = middle;
		else
			first = middle + 1;
	}
	return false;
}

/* Where the last of these letters is, or `len`. */
static size_t find_last(const char *text, size_t len, char letter)
{
	size_t i = len;

	while (i && text[i - 1] != letter)
		i--;
	return i ? i - 1 : len;
}

static bool is_version(const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (text[i] != '.' && (text[i] < '0' || text[i] > '9'))
			return false;
	return len > 0;
}

bool tool_is_named(const char *program, size_t len)
{
	size_t slash = find_last(program, len, '/');
	const char *name = slash < len ? program + slash + 1 : program;
	size_t n = len - (size_t)(name - program);
	size_t dash = find_last(name, n, '-');
	size_t at;

	if (dash < n && is_version(name + dash + 1, n - dash - 1))
		n = dash;
	if (is_listed(name, n))
		return true;
	for (at = 0; at < n; at++)
		if (name[at] == '-' && is_listed(name + at + 1, n - at - 1))
			return true;
	return false;
}

/* ---- names ---- */

/* FNV-1a */
static uint64_t hash_name(const char *text, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325;

	while (len--)
		hash = (hash ^ (unsigned char)*text++) * 0x100000001b3;
	return hash;
}

/* Whether it is new. Only accepted names are remembered, so `seen` never fills. */
static bool is_first(struct named *named, const char *name, size_t len)
{
	uint64_t hash = hash_name(name, len) | 1;
	size_t at = (size_t)(hash / 2) % N_SEEN;

	while (named->seen[at] && named->seen[at] != hash)
		at = (at + 1) % N_SEEN;
	if (named->seen[at])
		return false;
	if (named->n < MAX_NAMES)
		named->seen[at] = hash;
	return true;
}

static void put_path(char *path, const char *cwd, const char *name, size_t len)
{
	size_t n = 0;
	size_t i;

	for (; name[0] != '/' && cwd[n] && n < PATH_MAX; n++)
		path[n] = cwd[n];
	if (n && path[n - 1] != '/')
		path[n++] = '/';
	for (i = 0; i < len; i++)
		path[n++] = name[i];
	path[n] = '\0';
}

size_t named_add(struct named *named, const char *cwd, const char *name, size_t len)
{
	if (len > PATH_MAX || (!*cwd && *name != '/'))
		return 1;
	if (!is_first(named, name, len))
		return 0;
	if (named->n == MAX_NAMES)
		return 1;
	put_path(named->paths[named->n++], cwd, name, len);
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The words are split as libiberty's buildargv() does. */
size_t named_add_nested(struct named *named, const char *cwd, const char *text, size_t len)
{
	char *word = named->word;
	size_t n_missed = 0;
	size_t n = 0;
	char quote = '\0';
	bool is_word = false;
	size_t i;

	for (i = 0; i <= len; i++) {
		if (i == len || (!quote && is_blank(text[i]))) {
			if (is_word && n > 1 && word[0] == '@')
				n_missed += named_add(named, cwd, word + 1, n - 1);
			n = 0;
			is_word = false;
			continue;
		}
		is_word = true;
		if (text[i] == '\\' && i + 1 < len)
			word[n++] = text[++i];
		else if (quote && text[i] == quote)
			quote = '\0';
		else if (!quote && (text[i] == '\'' || text[i] == '"'))
			quote = text[i];
		else
			word[n++] = text[i];
	}
	return n_missed;
}

void named_clear(struct named *named)
{
	size_t i;

	named->n = 0;
	for (i = 0; i < N_SEEN; i++)
		named->seen[i] = 0;
}
