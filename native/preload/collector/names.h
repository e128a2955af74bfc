/* SPDX-License-Identifier: Apache-2.0 */
/* Names as text, and where they lead when they can be looked up still. */
#ifndef ETRACE_PRELOAD_NAMES_H
#define ETRACE_PRELOAD_NAMES_H

#include <limits.h>
#include <stdbool.h>

#include "etrace_format.h"

struct name {
	size_t len;
	char text[2 * PATH_MAX + 2];
};

void name_set(struct name *name, const char *text, size_t len);

/* `text` made absolute by putting `directory` and a slash before it. */
void name_join(struct name *name, const char *directory, size_t n_directory,
	       const struct etrace_text *text);

/* Resolve the directories, keep the last component. As it was when they are gone. */
void name_resolve_directories(struct name *name);

/* Resolve all of it; unchanged when it is gone. */
void name_resolve(struct name *name);

/* Whether both are the same file. */
bool name_leads_to(const struct name *name, const struct etrace_text *path);

static inline struct etrace_text name_text(const struct name *name)
{
	return (struct etrace_text){ name->text, name->len };
}

#endif /* ETRACE_PRELOAD_NAMES_H */
