// SPDX-License-Identifier: Apache-2.0
/* Writes argv[1] after it has loaded plugin.so, which lies where only this program's RUNPATH leads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	void *plugin = argc > 2 ? dlmopen(LM_ID_BASE, "plugin.so", RTLD_NOW)
				: dlopen("plugin.so", RTLD_NOW);

	if (!plugin || dlopen("missing.so", RTLD_NOW)) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	return write(out, "x\n", 2) != 2 || close(out);
}
