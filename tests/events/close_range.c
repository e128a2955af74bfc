// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * close_range: a Close for each descriptor that was open, none for those only marked.
 *
 * since: 5.11
 */
#include "expect.h"

#include <linux/close_range.h>

static void null_at(struct task *task, int wanted)
{
	long fd = MUST(open("/dev/null", O_RDONLY));

	expect_open(task, "/dev/null", "/dev/null", O_RDONLY, 0, fd);
	if (fd == wanted)
		return;
	MUST(dup2((int)fd, wanted));
	expect(task, "Dup|oldfd=%ld,newfd=%d,flags=0", fd, wanted);
	MUST(close((int)fd));
	expect(task, "Close|fd=%ld", fd);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	struct task child;
	long pid;

	for (int fd = 20; fd <= 26; fd += 2)
		null_at(&task, fd);
	MUST(syscall(SYS_close_range, 22U, 25U, 0U));
	expect(&task, "Close|fd=22");
	expect(&task, "Close|fd=24");
	MUST(syscall(SYS_close_range, 30U, 40U, 0U)); /* none is open: no line */
	MUST_FAIL(syscall(SYS_close_range, 26U, 20U, 0U), EINVAL);

	child = expect_child(&task);
	pid = MUST(fork_call());
	if (!pid) {
		MUST(syscall(SYS_close_range, 20U, 20U, (unsigned int)CLOSE_RANGE_UNSHARE));
		expect(&child, "Close|fd=20");
		leave(&child, 0);
	}
	expect_forked(&task, &child, pid);
	wait_for(pid);

	MUST(syscall(SYS_close_range, 3U, ~0U, (unsigned int)CLOSE_RANGE_CLOEXEC));
	MUST(syscall(SYS_close_range, 26U, ~0U, 0U));
	expect(&task, "Close|fd=26");
	MUST(syscall(SYS_close_range, 3U, ~0U, 0U));
	expect(&task, "Close|fd=20");
	leave(&task, 0);
}
