// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Exit has the status as the parent sees it: the low eight bits, of one task or of all. */
#include "expect.h"

#include <linux/futex.h>

static int never;

static int waits_forever(void *argument)
{
	(void)argument;
	for (;;)
		syscall(SYS_futex, &never, FUTEX_WAIT, 0, NULL, NULL, 0);
	return 0;
}

static void starts(struct task *task, int (*body)(void *), void *argument, struct task *thread,
		   int *gone)
{
	long tid = MUST(start_clone(body, argument, THREAD_FLAGS, gone));

	expect(task, "SysClone|flags=%lu", THREAD_FLAGS | (unsigned long)CLONE_CHILD_CLEARTID);
	expect_fork(task, thread, tid);
}

static void plain(struct task *task, int status)
{
	struct task child = expect_child(task);
	long pid = MUST(fork_call());

	if (!pid) {
		expect_exit(&child, status & 0xff);
		syscall(SYS_exit, status);
	}
	expect_forked(task, &child, pid);
	wait_for(pid);
}

/* exit_group ends every thread with its status. */
static void whole_group(struct task *task)
{
	struct task child = expect_child(task);
	struct task thread;
	int gone;
	long pid = MUST(fork_call());

	if (!pid) {
		thread = expect_child(&child);
		expect_exit(&thread, 44);
		starts(&child, waits_forever, NULL, &thread, &gone);
		expect_exit(&child, 44);
		syscall(SYS_exit_group, 44 + 256);
	}
	expect_forked(task, &child, pid);
	wait_for(pid);
}

static int ends_last(void *argument)
{
	struct task *thread = argument;

	usleep(50000);
	expect_exit(thread, 12);
	return 12;
}

/*
 * The first thread ends before another. What its parent sees is the status of the first thread, or
 * since Linux 5.17 (synchronize_group_exit) that of the last; a backend may print either.
 */
static void leader_first(struct task *task)
{
	struct task child = expect_child(task);
	struct task thread;
	int gone;
	long pid = MUST(fork_call());

	if (!pid) {
		thread = expect_child(&child);
		starts(&child, ends_last, &thread, &thread, &gone);
		expect(&child, "Exit|status=" ANY);
		syscall(SYS_exit, 11);
	}
	expect_forked(task, &child, pid);
	wait_for(pid);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	static const int statuses[] = { 0, 1, 2, 42, 127, 128, 137, 255, 256, 259, -1 };

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		plain(&task, statuses[i]);
	whole_group(&task);
	leader_first(&task);
	leave(&task, 0);
}
