// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* clone3: the flags and the exit signal of its structure, as clone would have them. */
#include "expect.h"

#include <linux/sched.h>

static void clones(struct task *task, struct clone_args args)
{
	struct task child = expect_child(task);
	long pid = MUST(syscall(SYS_clone3, &args, sizeof(args)));

	if (!pid)
		leave(&child, 1);
	expect(task, "SysClone|flags=%llu",
	       (unsigned long long)args.flags | (unsigned long long)args.exit_signal);
	expect_fork(task, &child, pid);
	wait_for(pid);
}

static void fails(struct task *task, struct clone_args args, size_t size)
{
	MUST_FAIL(syscall(SYS_clone3, &args, size), EINVAL);
	expect(task, "SysClone|flags=%llu",
	       (unsigned long long)args.flags | (unsigned long long)args.exit_signal);
	expect(task, "SysCloneFailed|");
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	int pidfd = -1;

	clones(&task, (struct clone_args){ .exit_signal = SIGCHLD });
	clones(&task, (struct clone_args){ .flags = CLONE_FS | CLONE_FILES });
	clones(&task, (struct clone_args){ .flags = CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD });
	clones(&task, (struct clone_args){ .flags = CLONE_PIDFD | CLONE_VFORK,
					   .pidfd = (uint64_t)(uintptr_t)&pidfd,
					   .exit_signal = SIGCHLD });
	MUST(close(pidfd));
	expect(&task, "Close|fd=%d", pidfd);
	fails(&task, (struct clone_args){ .flags = CLONE_SIGHAND, .exit_signal = SIGCHLD },
	      sizeof(struct clone_args));
	fails(&task, (struct clone_args){ .exit_signal = 255 }, sizeof(struct clone_args));
	leave(&task, 0);
}
