// SPDX-License-Identifier: GPL-2.0-only
/* Formats one event when loaded and prints the lines: process context, nothing else happens. */
#include <linux/module.h>

#include "etrace_format.h"

static char text[256];

static int __init check_init(void)
{
	const struct etrace_text data[] = { { "/etc/passwd", 11 }, { "/etc/../etc/passwd", 18 } };
	const s64 values[] = { 0, 0, 3 };
	struct etrace_prefix prefix;
	struct etrace_out out;

	etrace_out_init(&out, text, sizeof(text));
	etrace_prefix_init(&prefix, 4194305, 0, 1500000007ULL);
	etrace_put_event(&out, &prefix, ETRACE_EV_OPEN, values, data);
	pr_info("%.*s", (int)out.len, text);
	return 0;
}

static void __exit check_exit(void)
{
}

module_init(check_init);
module_exit(check_exit);
MODULE_DESCRIPTION("etrace: the formatter compiles and links in the kernel");
MODULE_LICENSE("GPL");
