// SPDX-License-Identifier: Apache-2.0
/* tool FROM TO: TO, a header, appears whole; it has the size of FROM. */
#include <stdio.h>

int main(int argc, char **argv)
{
	FILE *from = argc == 3 ? fopen(argv[1], "r") : NULL;
	FILE *to = fopen("tool.new", "w");
	int n = 0;

	if (!from || !to)
		return 1;
	while (getc(from) != EOF)
		n++;
	fprintf(to, "#undef SIZE\n#define SIZE %d\n", n);
	fclose(from);
	return fclose(to) || rename("tool.new", argv[2]);
}
