// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * vfork prints SchedFork alone, or what libc makes of it where there is no such call. The child runs
 * in its parent's memory until it execs or exits.
 */
#include "expect.h"

static void expect_vforked(const struct task *task, const struct task *child, long pid)
{
#ifndef SYS_vfork
	expect(task, "SysClone|flags=%d", CLONE_VM | CLONE_VFORK | SIGCHLD);
#endif
	expect_fork(task, child, pid);
}

static void vforks(struct task *task, bool exec)
{
	/* static: the child must leave nothing changed in the parent's frame */
	static struct task child;
	static char *argv[] = { "child", "--as", child.name, NULL };
	long pid;

	child = expect_child(task);
	pid = MUST(vfork());
	if (!pid) {
		if (!exec)
			leave(&child, 7);
		expect_exec(&child, self(), self(), argv);
		execv(self(), argv);
		die("execv");
	}
	expect_vforked(task, &child, pid);
	wait_for(pid);
}

/* as posix_spawnp searches: exec fails in the shared memory and the next name is tried */
static void failed_exec(struct task *task)
{
	static struct task child;
	static char *argv[] = { "child", "--as", child.name, NULL };
	long pid;

	child = expect_child(task);
	pid = MUST(vfork());
	if (!pid) {
		execv("/absent/bin/child", argv);
		execv(here("absent"), argv);
		expect_exec(&child, self(), self(), argv);
		execv(self(), argv);
		die("execv");
	}
	expect_vforked(task, &child, pid);
	wait_for(pid);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);

	if (argc > 1)
		leave(&task, 3);
	vforks(&task, false);
	vforks(&task, true);
	failed_exec(&task);
	leave(&task, 0);
}
