// SPDX-License-Identifier: Apache-2.0
/*
 * The response files that a command names, on its command line and in these files. Each is taken
 * once and their number has a limit, for a file may name itself, and that a hundred thousand times.
 */
#include "response/named.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tracer.h"

/* FNV-1a */
u64 named_hash(const char *text, size_t len)
{
	u64 hash = 0xcbf29ce484222325;

	while (len--)
		hash = (hash ^ (unsigned char)*text++) * 0x100000001b3;
	return hash;
}

/* Whether it is new. Only accepted names are remembered, so `seen` never fills. */
static bool is_first(struct named *named, const char *name, size_t len)
{
	u64 hash = named_hash(name, len) | 1;
	size_t at = hash / 2 % N_SEEN;

	while (named->seen[at] && named->seen[at] != hash)
		at = (at + 1) % N_SEEN;
	if (named->seen[at])
		return false;
	if (named->n < MAX_NAMES)
		named->seen[at] = hash;
	return true;
}

static char *full_path(const char *cwd, const char *name, size_t len)
{
	size_t start = name[0] == '/' ? 0 : strlen(cwd);
	char *path = must_alloc(start + 1 + len + 1);

	memcpy(path, cwd, start);
	if (start && path[start - 1] != '/')
		path[start++] = '/';
	memcpy(path + start, name, len);
	path[start + len] = '\0';
	return path;
}

size_t named_add(struct named *named, const char *cwd, const char *name, size_t len)
{
	if (len > PATH_MAX)
		return 1;
	if (!is_first(named, name, len))
		return 0;
	if (named->n == MAX_NAMES)
		return 1;
	named->paths[named->n++] = full_path(cwd, name, len);
	return 0;
}

/* The words are split as libiberty's buildargv() does. */
size_t named_add_nested(struct named *named, const char *cwd, const char *text, size_t len)
{
	char *word = must_alloc(len + 1);
	size_t n_missed = 0;
	size_t n = 0;
	char quote = '\0';
	bool is_word = false;
	size_t i;

	for (i = 0; i <= len; i++) {
		bool is_blank = i == len || memchr(" \t\n\r\f\v", text[i], 6);

		if (is_blank && (!quote || i == len)) {
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
	free(word);
	return n_missed;
}

void named_clear(struct named *named)
{
	while (named->n)
		free(named->paths[--named->n]);
	memset(named->seen, 0, sizeof(named->seen));
}
