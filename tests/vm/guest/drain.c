// SPDX-License-Identifier: Apache-2.0
/*
 * drain FILE [--follow]: print a trace_pipe until it is empty. With --follow go on until SIGTERM,
 * then print what is left: unlike a killed cat, nothing that was read is lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS 50

static volatile sig_atomic_t ending;

static void end(int signal)
{
	(void)signal;
	ending = 1;
}

static void fail(const char *what)
{
	fprintf(stderr, "drain: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Print what is there now. */
static void print_all(int fd, const char *path)
{
	static char bytes[65536];
	ssize_t len;

	while ((len = read(fd, bytes, sizeof(bytes))) > 0)
		if (write(STDOUT_FILENO, bytes, (size_t)len) != len)
			fail("standard output");
	if (len < 0 && errno != EAGAIN && errno != EINTR)
		fail(path);
}

int main(int argc, char **argv)
{
	bool follow = argc == 3 && !strcmp(argv[2], "--follow");
	int fd;

	if (argc != 2 && !follow) {
		fprintf(stderr, "usage: drain FILE [--follow]\n");
		return 2;
	}
	signal(SIGTERM, end);
	fd = open(argv[1], O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		fail(argv[1]);
	while (follow && !ending) {
		poll(NULL, 0, POLL_MS); /* trace_pipe wakes a poll only at half a buffer */
		print_all(fd, argv[1]);
	}
	print_all(fd, argv[1]);
	return 0;
}
