// SPDX-License-Identifier: Apache-2.0
/* Writes past its memory: AddressSanitizer reports it and ends the program with status 1. */
#include <stdlib.h>

int main(int argc, char **argv)
{
	char *text = malloc(10);

	(void)argv;
	text[9 + argc] = 'x';
	free(text);
	return 0;
}
