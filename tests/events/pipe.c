// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* pipe and pipe2; a call that fails prints nothing. */
#include "expect.h"

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	static const int flags[] = { 0, O_CLOEXEC, O_NONBLOCK, O_DIRECT | O_CLOEXEC | O_NONBLOCK };
	int fds[2];

	MUST(pipe_call(fds));
	expect(&task, "Pipe|fd1=%d,fd2=%d,flags=0", fds[0], fds[1]);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		MUST(syscall(SYS_pipe2, fds, flags[i]));
		expect(&task, "Pipe|fd1=%d,fd2=%d,flags=%d", fds[0], fds[1], flags[i]);
	}
	MUST_FAIL(pipe_call(WILD), EFAULT);
	MUST_FAIL(syscall(SYS_pipe2, WILD, O_CLOEXEC), EFAULT);
	MUST_FAIL(syscall(SYS_pipe2, fds, O_APPEND), EINVAL);
	/* the two that failed took no descriptor */
	MUST(syscall(SYS_pipe2, fds, 0));
	expect(&task, "Pipe|fd1=%d,fd2=%d,flags=0", fds[0], fds[1]);
	leave(&task, 0);
}
