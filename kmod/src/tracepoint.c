// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's tracepoints by name: those of system calls and of exec are not exported. Process
 * context.
 */
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "tracepoint.h"

struct search {
	const char *name;
	struct tracepoint *found;
};

static void compare(struct tracepoint *tracepoint, void *data)
{
	struct search *search = data;

	if (!strcmp(tracepoint->name, search->name))
		search->found = tracepoint;
}

struct tracepoint *etrace_tracepoint_find(const char *name)
{
	struct search search = { .name = name };

	for_each_kernel_tracepoint(compare, &search);
	return search.found;
}
