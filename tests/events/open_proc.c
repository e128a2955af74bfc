// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Opens whose path is a link of /proc, a deleted file, or a name that only looks deleted. */
#include "expect.h"

static long opens(struct task *task, const char *path, const char *resolved, int flags)
{
	long fd = must(open(path, flags), path);

	expect_open(task, resolved, path, flags, 0, fd);
	return fd;
}

static char *fd_path(long fd)
{
	return text("/proc/self/fd/%ld", fd);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *odd = here("odd (deleted)");
	char *gone = here("gone");
	int pipe_fds[2];
	long fd;

	fd = opens(&task, "/proc/self/status", text("/proc/%d/status", getpid()), O_RDONLY);
	opens(&task, "/proc/self/exe", self(), O_RDONLY);
	opens(&task, "/proc/self/cwd", cwd(), O_RDONLY | O_DIRECTORY);
	opens(&task, fd_path(fd), text("/proc/%d/status", getpid()), O_RDONLY);

	make_file(odd);
	opens(&task, odd, odd, O_RDONLY);

	make_file(gone);
	fd = opens(&task, gone, gone, O_RDWR);
	MUST(unlink(gone));
	opens(&task, fd_path(fd), gone, O_RDONLY);

	MUST(pipe2(pipe_fds, 0));
	expect(&task, "Pipe|fd1=%d,fd2=%d,flags=0", pipe_fds[0], pipe_fds[1]);
	opens(&task, fd_path(pipe_fds[0]), link_of(fd_path(pipe_fds[0])), O_RDONLY);
	opens(&task, text("/dev/fd/%d", pipe_fds[1]), link_of(fd_path(pipe_fds[1])), O_WRONLY);
	leave(&task, 0);
}
