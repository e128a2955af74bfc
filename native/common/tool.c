// SPDX-License-Identifier: Apache-2.0
/*
 * The name of a program -> whether it is that of a tool of etrace/compilers. Part of the preload
 * library too: nothing of libc is used.
 */
#include "tool.h"

#include "tool_names.h"

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
