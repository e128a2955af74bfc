// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Which descriptor a dup gets: past those that no event made and up to the limit. */
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "expect.h"

static void set_limit(rlim_t n)
{
	struct rlimit limit;

	MUST(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = n;
	MUST(setrlimit(RLIMIT_NOFILE, &limit));
}

static long dup_of(struct task *task, int fd)
{
	long new_fd = MUST(syscall(SYS_dup, fd));

	expect(task, "Dup|oldfd=%d,newfd=%ld,flags=0", fd, new_fd);
	return new_fd;
}

static void drop(struct task *task, long fd)
{
	MUST(syscall(SYS_close, (int)fd));
	expect(task, "Close|fd=%ld", fd);
}

/* eventfd() has no event. */
static void past_what_is_not_seen(struct task *task)
{
	int event = (int)MUST(eventfd(0, 0));
	long first = dup_of(task, event);
	long second = dup_of(task, (int)first);

	drop(task, event);
	if (dup_of(task, STDIN_FILENO) != event)
		die("not the lowest");
	drop(task, event);
	drop(task, first);
	drop(task, second);
}

static void up_to_the_limit(struct task *task)
{
	long fd;

	set_limit(20);
	MUST_FAIL(dup2_call(STDIN_FILENO, 20), EBADF);
	MUST_FAIL(syscall(SYS_dup3, STDIN_FILENO, 20, O_CLOEXEC), EBADF);
	MUST_FAIL(syscall(SYS_fcntl, STDIN_FILENO, F_DUPFD, 20), EINVAL);
	fd = MUST(syscall(SYS_fcntl, STDIN_FILENO, F_DUPFD, 19));
	expect(task, "Dup|oldfd=0,newfd=%ld,flags=0", fd);
	MUST_FAIL(syscall(SYS_fcntl, STDIN_FILENO, F_DUPFD_CLOEXEC, 19), EMFILE);
	drop(task, fd);
	fd = MUST(dup2_call(STDIN_FILENO, 19));
	expect(task, "Dup|oldfd=0,newfd=19,flags=0");
	set_limit(10);
	drop(task, fd);
	MUST_FAIL(syscall(SYS_close, 19), EBADF);
	set_limit(600);
	MUST(dup2_call(STDIN_FILENO, 555));
	expect(task, "Dup|oldfd=0,newfd=555,flags=0");
	fd = MUST(syscall(SYS_fcntl, STDIN_FILENO, F_DUPFD, 555));
	expect(task, "Dup|oldfd=0,newfd=%ld,flags=0", fd);
	drop(task, fd);
	drop(task, 555);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);

	past_what_is_not_seen(&task);
	up_to_the_limit(&task);
	leave(&task, 0);
}
