// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The first thread execs: it keeps its upid, the others end. */
#include "expect.h"

#include <linux/futex.h>

static int waits_forever(void *argument)
{
	int *never = argument;

	for (;;)
		syscall(SYS_futex, never, FUTEX_WAIT, *never, NULL, NULL, 0);
	return 0;
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *again[] = { "leader", "--as", task.name, NULL };
	struct task thread;
	int never = 0, gone[3];
	long tid;

	if (argc > 1)
		leave(&task, 6);
	for (int i = 0; i < 3; i++) {
		thread = expect_child(&task);
		tid = MUST(start_clone(waits_forever, &never, THREAD_FLAGS, &gone[i]));
		expect(&task, "SysClone|flags=%lu",
		       THREAD_FLAGS | (unsigned long)CLONE_CHILD_CLEARTID);
		expect_fork(&task, &thread, tid);
		expect(&thread, "Exit|status=" ANY);
	}
	expect_exec(&task, self(), self(), again);
	MUST(execv(self(), again));
}
