// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds by name what the kernel does not export. A kprobe that is never armed has the address of a
 * function. Process context.
 */
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "lookup.h"

/* A probe may be after the landing pad (IBT, BTI) where the function begins. */
static void *function_of(const void *address)
{
	char symbol[KSYM_SYMBOL_LEN]; /* name+0xoffset/0xsize */
	unsigned long offset = 0;
	const char *plus;

	sprint_symbol(symbol, (unsigned long)address);
	plus = strchr(symbol, '+');
	if (!plus || sscanf(plus, "+0x%lx", &offset) != 1)
		return NULL;
	return (char *)address - offset;
}

void *etrace_lookup(const char *name)
{
	struct kprobe probe = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };
	void *function;
	int err = register_kprobe(&probe);

	if (err) {
		pr_err("etrace: no kprobe finds %s: error %d\n", name, err);
		return NULL;
	}
	function = function_of(probe.addr);
	unregister_kprobe(&probe);
	return function;
}

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
