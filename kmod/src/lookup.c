// SPDX-License-Identifier: GPL-2.0-only
/* A kprobe that is never armed tells the address. Process context. */
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/string.h>

#include "lookup.h"

/* A probe may stand behind the landing pad (IBT, BTI) where the function begins. */
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
