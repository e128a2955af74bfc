// SPDX-License-Identifier: Apache-2.0
/* The name of a program -> whether it is that of a tool of etrace/compilers. */
#include "response/tool.h"

#include <stdlib.h>
#include <string.h>

#include "response/tool_names.h"

static int compare_name(const void *key, const void *name)
{
	return strcmp(key, *(const char *const *)name);
}

static bool is_listed(const char *name)
{
	return bsearch(name, tool_names, N_TOOL_NAMES, sizeof(*tool_names), compare_name);
}

bool tool_is_named(const struct etrace_text *program)
{
	const char *slash = memrchr(program->text, '/', program->len);
	const char *start = slash ? slash + 1 : program->text;
	char name[64];
	char *dash;
	size_t len = (size_t)(program->text + program->len - start);
	const char *at;

	if (len >= sizeof(name))
		return false;
	memcpy(name, start, len);
	name[len] = '\0';
	dash = strrchr(name, '-');
	if (dash && dash[1] && strspn(dash + 1, "0123456789.") == strlen(dash + 1))
		*dash = '\0';
	for (at = name; at; at = strchr(at, '-') ? strchr(at, '-') + 1 : NULL)
		if (is_listed(at))
			return true;
	return false;
}
