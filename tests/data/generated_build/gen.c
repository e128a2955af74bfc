// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

int main(void)
{
	char line[99];
	FILE *in = fopen("table.in", "r");

	while (in && fgets(line, sizeof(line), in))
		printf("#define T %s", line);
	return 0;
}
