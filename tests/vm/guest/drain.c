// SPDX-License-Identifier: Apache-2.0
/* drain FILE: print a trace_pipe until it is empty, without waiting for more. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char *what)
{
	fprintf(stderr, "drain: %s: %s\n", what, strerror(errno));
	exit(1);
}

int main(int argc, char **argv)
{
	static char bytes[65536];
	ssize_t len;
	int fd;

	if (argc != 2) {
		fprintf(stderr, "usage: drain FILE\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		fail(argv[1]);
	while ((len = read(fd, bytes, sizeof(bytes))) > 0)
		if (write(STDOUT_FILENO, bytes, (size_t)len) != len)
			fail("standard output");
	if (len < 0 && errno != EAGAIN)
		fail(argv[1]);
	return 0;
}
