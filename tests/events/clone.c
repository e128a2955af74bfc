// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* clone: SysClone with the flags and the exit signal, then SchedFork or SysCloneFailed. */
#include "expect.h"

static void clones(struct task *task, unsigned long flags)
{
	struct task child = expect_child(task);
	int tid;
	long pid = MUST(syscall(SYS_clone, flags, NULL, &tid, &tid, &tid));

	if (!pid)
		leave(&child, 1);
	expect(task, "SysClone|flags=%lu", flags);
	expect_fork(task, &child, pid);
	wait_for(pid);
}

static void fails(struct task *task, unsigned long flags)
{
	MUST_FAIL(syscall(SYS_clone, flags, NULL, NULL, NULL, NULL), EINVAL);
	expect(task, "SysClone|flags=%lu", flags);
	expect(task, "SysCloneFailed|");
}

/* A sibling: its parent is ours, but we made it. */
static void clone_parent(struct task *task)
{
	struct task middle = expect_child(task);
	struct task sibling;
	unsigned long flags = CLONE_PARENT | SIGCHLD;
	long pid = MUST(fork_call());

	if (pid) {
		expect_forked(task, &middle, pid);
		wait_for(pid);
		wait_for(-1);
		return;
	}
	sibling = expect_child(&middle);
	pid = MUST(syscall(SYS_clone, flags, NULL, NULL, NULL, NULL));
	if (!pid)
		leave(&sibling, 2);
	expect(&middle, "SysClone|flags=%lu", flags);
	expect_fork(&middle, &sibling, pid);
	leave(&middle, 0);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);

	clones(&task, SIGCHLD);
	clones(&task, 0);
	MUST(signal(SIGUSR1, SIG_IGN) == SIG_ERR ? -1 : 0);
	clones(&task, SIGUSR1);
	clones(&task, CLONE_FS | CLONE_FILES | SIGCHLD);
	clones(&task, CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD); /* as glibc's fork */
	clones(&task, CLONE_VFORK | SIGCHLD);
	/* asks to run untraced: still traced, and the flags are those of the call */
	clones(&task, CLONE_UNTRACED | SIGCHLD);
	clone_parent(&task);
	fails(&task, CLONE_SIGHAND | SIGCHLD);
	fails(&task, CLONE_THREAD | CLONE_SIGHAND);
	leave(&task, 0);
}
