// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* fork prints SchedFork, or as clone; the child has a upid of its own, so have its children. */
#include "expect.h"

static void generation(struct task *task, int depth)
{
	struct task child;
	long pid, fd;

	fd = MUST(open("/dev/null", O_RDONLY));
	expect_open(task, "/dev/null", "/dev/null", O_RDONLY, 0, fd);
	for (int i = 0; i < depth; i++) {
		child = expect_child(task);
		pid = MUST(fork_call());
		if (!pid) {
			generation(&child, depth - 1);
			leave(&child, depth);
		}
		expect_forked(task, &child, pid);
		wait_for(pid);
	}
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);

	generation(&task, 3);
	leave(&task, 0);
}
