// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* close: every kind of descriptor, only when it was open. */
#include "expect.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

static void closes(struct task *task, long fd)
{
	MUST(syscall(SYS_close, (int)fd));
	expect(task, "Close|fd=%ld", fd);
	MUST_FAIL(syscall(SYS_close, (int)fd), EBADF);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	int sockets[2];
	long fd;

	fd = MUST(open("/dev/null", O_RDONLY));
	expect_open(&task, "/dev/null", "/dev/null", O_RDONLY, 0, fd);
	closes(&task, fd);
	closes(&task, MUST(eventfd(0, 0)));
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	closes(&task, sockets[1]);
	closes(&task, sockets[0]);
	closes(&task, STDIN_FILENO); /* inherited, not opened here */
	MUST_FAIL(syscall(SYS_close, -1), EBADF);
	MUST_FAIL(syscall(SYS_close, 100000), EBADF);
	leave(&task, 0);
}
