// SPDX-License-Identifier: Apache-2.0
/*
 * Close-on-exec: a Close for each such descriptor, in ascending order, right before New_proc. Only of
 * those that Open, Pipe or Dup made: for sockets and the like a backend is free.
 */
#include "expect.h"

#include <sys/ioctl.h>
#include <linux/close_range.h>

static void open_null(struct task *task, int flags, int wanted)
{
	long fd = MUST(open("/dev/null", flags));

	expect_open(task, "/dev/null", "/dev/null", flags, 0, fd);
	MUST(dup3((int)fd, wanted, flags & O_CLOEXEC));
	expect(task, "Dup|oldfd=%ld,newfd=%d,flags=%d", fd, wanted, flags & O_CLOEXEC);
	MUST(close((int)fd));
	expect(task, "Close|fd=%ld", fd);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *child_argv[] = { argv[0], "--as", task.name, NULL };
	int fds[2];
	long fd;

	if (argc > 1)
		leave(&task, 0);
	open_null(&task, O_RDONLY | O_CLOEXEC, 70);	/* closes */
	open_null(&task, O_RDONLY, 71);			/* stays */
	open_null(&task, O_RDONLY | O_CLOEXEC, 72);	/* marked, then not any more */
	MUST(fcntl(72, F_SETFD, 0));
	open_null(&task, O_RDONLY, 73);			/* marked later */
	MUST(fcntl(73, F_SETFD, FD_CLOEXEC));
	open_null(&task, O_RDONLY, 74);
	MUST(ioctl(74, FIOCLEX));
	open_null(&task, O_RDONLY | O_CLOEXEC, 75);
	MUST(ioctl(75, FIONCLEX));
	MUST(pipe2(fds, O_CLOEXEC));
	expect(&task, "Pipe|fd1=%d,fd2=%d,flags=%d", fds[0], fds[1], O_CLOEXEC);
	MUST(close(fds[0]));
	expect(&task, "Close|fd=%d", fds[0]);
	fd = MUST(fcntl(fds[1], F_DUPFD_CLOEXEC, 60));
	expect(&task, "Dup|oldfd=%d,newfd=%ld,flags=%d", fds[1], fd, O_CLOEXEC);
	/* a plain copy does not inherit the mark; dup2 onto a marked descriptor clears it */
	fd = MUST(fcntl((int)fd, F_DUPFD, 62));
	expect(&task, "Dup|oldfd=60,newfd=%ld,flags=0", fd);
	open_null(&task, O_RDONLY | O_CLOEXEC, 76);
	MUST(dup2(71, 76));
	expect(&task, "Dup|oldfd=71,newfd=76,flags=0");
	open_null(&task, O_RDONLY, 80);
	open_null(&task, O_RDONLY, 81);
	MUST(syscall(SYS_close_range, 80U, 81U, (unsigned int)CLOSE_RANGE_CLOEXEC));

	/* an exec that fails closes nothing */
	MUST_FAIL(execv("absent", child_argv), ENOENT);

	expect(&task, "Close|fd=%d", fds[1]);
	expect(&task, "Close|fd=60");
	expect(&task, "Close|fd=70");
	expect(&task, "Close|fd=73");
	expect(&task, "Close|fd=74");
	expect(&task, "Close|fd=80");
	expect(&task, "Close|fd=81");
	expect_exec(&task, self(), self(), child_argv);
	MUST(execv(self(), child_argv));
}
