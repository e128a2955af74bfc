// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Variables on standard input, each ended by a null byte -> the same as a capture records them (see
 * test_etrace_secret.py). Every variable is a malloc of its size, so that AddressSanitizer sees a read of
 * one byte too many. With an argument none is whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etrace_secret.h"

int main(int argc, char **argv)
{
	char hidden[ETRACE_HIDDEN_MAX];
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	(void)argv;
	while ((n = getdelim(&line, &size, '\0', stdin)) > 0) {
		size_t len = (size_t)n - 1, n_hidden;
		char *exact = malloc(len ? len : 1);

		if (!exact)
			return 1;
		memcpy(exact, line, len);
		n_hidden = etrace_hide(hidden, exact, len, argc == 1);
		fwrite(n_hidden ? hidden : exact, 1, n_hidden ? n_hidden : len, stdout);
		putchar('\0');
		free(exact);
	}
	free(line);
	return 0;
}
