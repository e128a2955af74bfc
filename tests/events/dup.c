// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* dup, dup2, dup3. */
#include "expect.h"

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	long fd;

	fd = MUST(syscall(SYS_dup, STDIN_FILENO));
	expect(&task, "Dup|oldfd=0,newfd=%ld,flags=0", fd);
	MUST(dup2_call((int)fd, 40));
	expect(&task, "Dup|oldfd=%ld,newfd=40,flags=0", fd);
	MUST(dup2_call((int)fd, 40)); /* closes what was there, without a line of its own */
	expect(&task, "Dup|oldfd=%ld,newfd=40,flags=0", fd);
	MUST(dup2_call(40, 40));
#ifdef SYS_dup2 /* dup3 would refuse it: libc then looks only whether it is open */
	expect(&task, "Dup|oldfd=40,newfd=40,flags=0");
#endif
	MUST(syscall(SYS_dup3, 40, 41, 0));
	expect(&task, "Dup|oldfd=40,newfd=41,flags=0");
	MUST(syscall(SYS_dup3, 40, 42, O_CLOEXEC));
	expect(&task, "Dup|oldfd=40,newfd=42,flags=524288");
	MUST_FAIL(syscall(SYS_dup3, 40, 40, 0), EINVAL);
	MUST_FAIL(syscall(SYS_dup3, 40, 43, O_APPEND), EINVAL);
	MUST_FAIL(syscall(SYS_dup, 39), EBADF);
	MUST_FAIL(dup2_call(39, 44), EBADF);
	MUST_FAIL(dup2_call(39, 39), EBADF);
	MUST_FAIL(dup2_call(40, -1), EBADF);
	leave(&task, 0);
}
