/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Rendered from etrace/spec/builders.toml by `make generate`: do not edit. */
#ifndef ETRACE_BUILDERS_H
#define ETRACE_BUILDERS_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#endif

/*
 * Names of the files of make, ninja and their like, with null bytes to the end: they are compared
 * by words of 8 bytes, too. No pointers: the preload library would relocate them.
 */
#define ETRACE_BUILDER_MAX 16

static const char etrace_builders[][ETRACE_BUILDER_MAX] __attribute__((aligned(8))) = {
	"gmake",
	"make",
	"ninja",
	"ninja-build",
	"samu",
};

#define ETRACE_N_BUILDERS (sizeof(etrace_builders) / ETRACE_BUILDER_MAX)

/* Whether a path is that of one of them. Without libc. */
static inline bool etrace_is_builder(const char *path, unsigned long len)
{
	unsigned long at = len, i, n;

	while (at && path[at - 1] != '/')
		at--;
	for (i = 0; i < ETRACE_N_BUILDERS; i++) {
		for (n = 0; n < len - at && etrace_builders[i][n] == path[at + n];)
			n++;
		if (n == len - at && !etrace_builders[i][n])
			return true;
	}
	return false;
}

#endif /* ETRACE_BUILDERS_H */
