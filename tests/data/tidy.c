// SPDX-License-Identifier: Apache-2.0
/* Frees what it allocates: no sanitizer has anything to say. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	char *text = malloc(100);

	if (!text)
		return 2;
	snprintf(text, 100, "tidy");
	puts(text);
	free(text);
	return 0;
}
