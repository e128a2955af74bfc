// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* A thread that execs keeps its upid; all others end, the first one included. */
#include "expect.h"

#include <linux/futex.h>

static int waits_forever(void *argument)
{
	int *never = argument;

	for (;;)
		syscall(SYS_futex, never, FUTEX_WAIT, *never, NULL, NULL, 0);
	return 0;
}

static int execs(void *argument)
{
	struct task *task = argument;
	char *argv[] = { "thread", "--as", task->name, NULL };

	expect_exec(task, self(), self(), argv);
	execv(self(), argv);
	die("execv");
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	struct task sleeper, thread;
	int never = 0, gone[2];
	long tid, fd;

	if (argc > 1) {
		/* opens as the task that it was before */
		fd = MUST(open("/dev/null", O_RDONLY));
		expect_open(&task, "/dev/null", "/dev/null", O_RDONLY, 0, fd);
		leave(&task, 6);
	}
	sleeper = expect_child(&task);
	tid = MUST(start_clone(waits_forever, &never, THREAD_FLAGS, &gone[0]));
	expect(&task, "SysClone|flags=%lu", THREAD_FLAGS | (unsigned long)CLONE_CHILD_CLEARTID);
	expect_fork(&task, &sleeper, tid);
	/* what a task gets that another one's exec ends depends on the kernel */
	expect(&sleeper, "Exit|status=" ANY);

	thread = expect_child(&task);
	/* said before the call: afterwards there is no time */
	expect(&task, "SysClone|flags=%lu", THREAD_FLAGS | (unsigned long)CLONE_CHILD_CLEARTID);
	expect(&task, "SchedFork|pid=%s", thread.name);
	expect(&task, "Exit|status=" ANY);
	MUST(start_clone(execs, &thread, THREAD_FLAGS, &gone[1]));
	waits_forever(&never);
}
