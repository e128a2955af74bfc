// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Threads: each has a upid and an Exit; descriptors are shared. */
#include "expect.h"

struct work {
	struct task task;
	const char *path;
	long fd;
	int status;
};

static int open_one(void *argument)
{
	struct work *work = argument;

	work->fd = MUST(open(work->path, O_RDONLY));
	expect_open(&work->task, work->path, work->path, O_RDONLY, 0, work->fd);
	expect_exit(&work->task, work->status);
	return work->status;
}

static int close_one(void *argument)
{
	struct work *work = argument;

	MUST(close((int)work->fd));
	expect(&work->task, "Close|fd=%ld", work->fd);
	expect_exit(&work->task, work->status);
	return work->status;
}

static int fork_one(void *argument)
{
	struct work *work = argument;
	struct task child = expect_child(&work->task);
	long pid = MUST(fork_call());

	if (!pid)
		leave(&child, 5);
	expect_forked(&work->task, &child, pid);
	wait_for(pid);
	expect_exit(&work->task, 0);
	return 0;
}

static void runs(struct task *task, int (*body)(void *), struct work *work, unsigned long flags)
{
	long tid;

	work->task = expect_child(task);
	tid = MUST(run_clone(body, work, flags));
	expect(task, "SysClone|flags=%lu", flags | CLONE_CHILD_CLEARTID);
	expect_fork(task, &work->task, tid);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	struct work work = { .path = "/dev/null", .status = 0 };

	runs(&task, open_one, &work, THREAD_FLAGS);
	MUST(close((int)work.fd)); /* opened by the thread */
	expect(&task, "Close|fd=%ld", work.fd);
	work.status = 9;
	runs(&task, open_one, &work, THREAD_FLAGS);
	runs(&task, close_one, &work, THREAD_FLAGS);
	runs(&task, fork_one, &work, THREAD_FLAGS);

	work.path = here("file");
	make_file(work.path);
	runs(&task, open_one, &work, THREAD_FLAGS & ~(unsigned long)CLONE_FILES);
	MUST_FAIL(close((int)work.fd), EBADF); /* its table was a copy */
	/* shared memory, but a process: clone without CLONE_THREAD */
	runs(&task, open_one, &work, CLONE_VM | SIGCHLD);
	leave(&task, 0);
}
