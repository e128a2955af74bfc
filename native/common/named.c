// SPDX-License-Identifier: Apache-2.0
/*
 * The response files that a command names, on its command line and in these files. Each is taken
 * once and their number has a limit, for a file may name itself, and that a hundred thousand times.
 * Part of the preload library too: nothing of libc is used, and nothing is allocated.
 */
#include "named.h"

#include <stdbool.h>

/* FNV-1a */
uint64_t named_hash(const char *text, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325;

	while (len--)
		hash = (hash ^ (unsigned char)*text++) * 0x100000001b3;
	return hash;
}

/* Whether it is new. Only accepted names are remembered, so `seen` never fills. */
static bool is_first(struct named *named, const char *name, size_t len)
{
	uint64_t hash = named_hash(name, len) | 1;
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
	if (len > PATH_MAX)
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
