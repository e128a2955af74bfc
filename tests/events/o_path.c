// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* O_PATH descriptors are opened, copied and closed like others; with O_NOFOLLOW a link stays. */
#include "expect.h"

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	long fd;

	make_file("file");
	MUST(symlink("file", "link"));
	expect_symlink(&task, "file", here("file"), here("link"));

	fd = MUST(syscall(SYS_openat, AT_FDCWD, "link", O_PATH, 0));
	expect_open(&task, here("file"), here("link"), O_PATH, 0, fd);
	fd = MUST(syscall(SYS_openat, AT_FDCWD, "link", O_PATH | O_NOFOLLOW | O_CLOEXEC, 0));
	expect_open(&task, here("link"), here("link"), O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, fd);
	MUST(close((int)fd));
	expect(&task, "Close|fd=%ld", fd);
	fd = MUST(syscall(SYS_openat, AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0));
	expect_open(&task, "/proc", "/proc", O_PATH | O_DIRECTORY, 0, fd);
	leave(&task, 0);
}
