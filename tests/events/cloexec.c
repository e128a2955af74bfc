// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Close-on-exec: a Close for each such descriptor, in ascending order, right before New_proc. Only
 * of those that Open, Pipe or Dup made: for sockets and the like a backend is free.
 *
 * since: 5.11
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

static void marked_in_every_way(struct task *task)
{
	open_null(task, O_RDONLY | O_CLOEXEC, 70);	/* closes */
	open_null(task, O_RDONLY, 71);			/* stays */
	open_null(task, O_RDONLY | O_CLOEXEC, 72);	/* marked, then no longer */
	MUST(fcntl(72, F_SETFD, 0));
	open_null(task, O_RDONLY, 73);			/* marked later */
	MUST(fcntl(73, F_SETFD, FD_CLOEXEC));
	open_null(task, O_RDONLY, 74);
	MUST(ioctl(74, FIOCLEX));
	open_null(task, O_RDONLY | O_CLOEXEC, 75);
	MUST(ioctl(75, FIONCLEX));
	open_null(task, O_RDONLY | O_CLOEXEC, 76);	/* cleared by dup2 */
	MUST(dup2(71, 76));
	expect(task, "Dup|oldfd=71,newfd=76,flags=0");
	open_null(task, O_RDONLY, 80);
	open_null(task, O_RDONLY, 81);
	MUST(syscall(SYS_close_range, 80U, 81U, (unsigned int)CLOSE_RANGE_CLOEXEC));
}

/* Returns the write end, which is marked; of its copies 60 is, 62 is not. */
static int copies_of_a_pipe(struct task *task)
{
	int fds[2];
	long fd;

	MUST(pipe2(fds, O_CLOEXEC));
	expect(task, "Pipe|fd1=%d,fd2=%d,flags=%d", fds[0], fds[1], O_CLOEXEC);
	MUST(close(fds[0]));
	expect(task, "Close|fd=%d", fds[0]);
	fd = MUST(fcntl(fds[1], F_DUPFD_CLOEXEC, 60));
	expect(task, "Dup|oldfd=%d,newfd=%ld,flags=%d", fds[1], fd, O_CLOEXEC);
	fd = MUST(fcntl((int)fd, F_DUPFD, 62));
	expect(task, "Dup|oldfd=60,newfd=%ld,flags=0", fd);
	return fds[1];
}

int main(int argc, char **argv)
{
	static const int closed[] = { 60, 70, 73, 74, 80, 81 };
	struct task task = expect_start(argc, argv);
	char *again[] = { argv[0], "--as", task.name, NULL };
	int write_end;

	if (argc > 1)
		leave(&task, 0);
	marked_in_every_way(&task);
	write_end = copies_of_a_pipe(&task);
	/* an exec that fails closes nothing */
	MUST_FAIL(execv("absent", again), ENOENT);

	expect(&task, "Close|fd=%d", write_end);
	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		expect(&task, "Close|fd=%d", closed[i]);
	expect_exec(&task, self(), self(), again);
	MUST(execv(self(), again));
}
