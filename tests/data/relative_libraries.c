// SPDX-License-Identifier: Apache-2.0
/*
 * Loads libraries by relative names, changes its directory, and writes a file.
 * usage: relative_libraries OUT {dlopen|dlmopen|chdir|unlink} NAME ...
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int do_one(const char *what, const char *name)
{
	if (!strcmp(what, "dlopen"))
		return !dlopen(name, RTLD_NOW);
	if (!strcmp(what, "dlmopen"))
		return !dlmopen(LM_ID_NEWLM, name, RTLD_NOW);
	return strcmp(what, "chdir") ? unlink(name) : chdir(name);
}

int main(int argc, char **argv)
{
	int i;
	int out;

	for (i = 2; i + 1 < argc; i += 2)
		if (do_one(argv[i], argv[i + 1]))
			return i;
	out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	return out < 0 || write(out, "x", 1) != 1;
}
