// SPDX-License-Identifier: GPL-2.0-only
/* names TARGET: calls whose names a tracer looks up; each but the first fails where TARGET cannot be reached. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *target = argv[1];
	int n = 0;

	if (argc != 2 || symlink(target, "made"))
		return 1;
	n += !rename(target, "other");
	n += !link(target, "another");
	n += !linkat(AT_FDCWD, target, AT_FDCWD, "third", AT_SYMLINK_FOLLOW);
	n += !symlink("none", target);
	n += !rename("made", target);
	printf("%d of the calls after the first succeeded\n", n);
	return 0;
}
