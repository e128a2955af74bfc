// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* A process whose parent has ended is traced on; the program ends when it has. */
#include "expect.h"

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	struct task middle = expect_child(&task);
	struct task orphan;
	int fds[2];
	char byte;
	long fd, pid;

	MUST(pipe2(fds, 0));
	expect(&task, "Pipe|fd1=%d,fd2=%d,flags=0", fds[0], fds[1]);
	pid = MUST(fork_call());
	if (!pid) {
		orphan = expect_child(&middle);
		pid = MUST(fork_call());
		if (pid) {
			expect_forked(&middle, &orphan, pid);
			leave(&middle, 1);
		}
		while (getppid() == pid)
			usleep(1000);
		MUST(setsid());
		fd = MUST(open("/dev/null", O_RDONLY));
		expect_open(&orphan, "/dev/null", "/dev/null", O_RDONLY, 0, fd);
		leave(&orphan, 2);
	}
	expect_forked(&task, &middle, pid);
	MUST(close(fds[1]));
	expect(&task, "Close|fd=%d", fds[1]);
	wait_for(pid);
	MUST(read(fds[0], &byte, 1)); /* until the orphan has let go of the other end */
	usleep(20000);
	leave(&task, 0);
}
