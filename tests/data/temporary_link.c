// SPDX-License-Identifier: Apache-2.0
/*
 * Copies a file into one without a name, and gives that a name.
 * usage: temporary_link IN OUT {fd|proc}
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int in = open(argv[1], O_RDONLY);
	int fd = open(".", O_TMPFILE | O_RDWR, 0644);
	char text[64];
	char link[64];
	ssize_t n = read(in, text, sizeof(text));

	if (argc < 4 || fd < 0 || write(fd, text, (size_t)n) != n)
		return 2;
	if (!strcmp(argv[3], "fd"))
		return linkat(fd, "", AT_FDCWD, argv[2], AT_EMPTY_PATH) != 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, link, AT_FDCWD, argv[2], AT_SYMLINK_FOLLOW) != 0;
}
