// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* fcntl: F_DUPFD and F_DUPFD_CLOEXEC copy a descriptor, other commands print nothing. */
#include "expect.h"

static void copies(struct task *task, long nr)
{
	long fd;

	fd = MUST(syscall(nr, STDIN_FILENO, F_DUPFD, 50));
	expect(task, "Dup|oldfd=0,newfd=%ld,flags=0", fd);
	fd = MUST(syscall(nr, (int)fd, F_DUPFD_CLOEXEC, 50));
	expect(task, "Dup|oldfd=50,newfd=%ld,flags=524288", fd);
	MUST(syscall(nr, (int)fd, F_GETFD, 0));
	MUST(syscall(nr, (int)fd, F_SETFD, 0));
	MUST(syscall(nr, (int)fd, F_GETFL, 0));
	MUST_FAIL(syscall(nr, 49, F_DUPFD, 50), EBADF);
	MUST_FAIL(syscall(nr, STDIN_FILENO, F_DUPFD, -1), EINVAL);
	MUST(close(50));
	expect(task, "Close|fd=50");
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);

	copies(&task, SYS_fcntl);
#ifdef SYS_fcntl64
	copies(&task, SYS_fcntl64);
#endif
	leave(&task, 0);
}
