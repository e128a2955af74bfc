// SPDX-License-Identifier: Apache-2.0
#include "names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void name_set(struct name *name, const char *text, size_t len)
{
	if (len >= sizeof(name->text))
		len = sizeof(name->text) - 1;
	memcpy(name->text, text, len);
	name->text[len] = '\0';
	name->len = len;
}

static void append(struct name *name, const char *text, size_t len)
{
	if (name->len + len >= sizeof(name->text))
		len = sizeof(name->text) - 1 - name->len;
	memcpy(name->text + name->len, text, len);
	name->len += len;
	name->text[name->len] = '\0';
}

void name_join(struct name *name, const char *directory, size_t n_directory,
	       const struct etrace_text *text)
{
	name->len = 0;
	name->text[0] = '\0';
	if (!text->len || text->text[0] != '/') {
		name_set(name, directory, n_directory);
		if (!n_directory)
			return;
		if (text->len)
			append(name, "/", 1);
	}
	append(name, text->text, text->len);
}

void name_resolve(struct name *name)
{
	char resolved[PATH_MAX];

	if (realpath(name->text, resolved))
		name_set(name, resolved, strlen(resolved));
}

void name_resolve_directories(struct name *name)
{
	char resolved[PATH_MAX];
	char *slash = strrchr(name->text, '/');
	struct name last;

	if (!slash || slash == name->text)
		return;
	name_set(&last, slash + 1, strlen(slash + 1));
	if (!last.len || !strcmp(last.text, ".") || !strcmp(last.text, "..")) {
		name_resolve(name);
		return;
	}
	*slash = '\0';
	if (!realpath(name->text, resolved)) {
		*slash = '/';
		return;
	}
	name_set(name, resolved, strlen(resolved));
	if (name->len > 1)
		append(name, "/", 1);
	append(name, last.text, last.len);
}

bool name_leads_to(const struct name *name, const struct etrace_text *path)
{
	struct stat named, other;
	char text[PATH_MAX];

	if (name->len == path->len && !memcmp(name->text, path->text, path->len))
		return true;
	if (path->len >= sizeof(text))
		return false;
	memcpy(text, path->text, path->len);
	text[path->len] = '\0';
	return stat(name->text, &named) == 0 && stat(text, &other) == 0 &&
	       named.st_dev == other.st_dev && named.st_ino == other.st_ino;
}
