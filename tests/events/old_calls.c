// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* See expect.h. A machine that lacks one of these calls lacks them all: the test is made once. */
#include "expect.h"

#ifdef SYS_fork
#define CALL(libc_call, ...) syscall(__VA_ARGS__)
#else
#define CALL(libc_call, ...) (libc_call)
#endif

long fork_call(void)
{
	return CALL(fork(), SYS_fork);
}

long open_call(const char *path, int flags, unsigned int mode)
{
	return CALL(open(path, flags, mode), SYS_open, path, flags, mode);
}

long creat_call(const char *path, unsigned int mode)
{
	return CALL(creat(path, mode), SYS_creat, path, mode);
}

long pipe_call(int *fds)
{
	return CALL(pipe(fds), SYS_pipe, fds);
}

long dup2_call(int from, int to)
{
	return CALL(dup2(from, to), SYS_dup2, from, to);
}

long rename_call(const char *from, const char *to)
{
	return CALL(rename(from, to), SYS_rename, from, to);
}

long link_call(const char *from, const char *to)
{
	return CALL(link(from, to), SYS_link, from, to);
}

long symlink_call(const char *target, const char *path)
{
	return CALL(symlink(target, path), SYS_symlink, target, path);
}
