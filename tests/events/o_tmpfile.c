// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* O_TMPFILE: the file has only the kernel's own name; linkat gives it one. */
#include "expect.h"

#define DELETED " (deleted)"

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *path, *name;
	long fd;

	make_dir("dir");
	fd = MUST(syscall(SYS_openat, AT_FDCWD, "dir", O_TMPFILE | O_RDWR, 0600));
	path = text("/proc/self/fd/%ld", fd);
	name = link_of(path);
	name[strlen(name) - strlen(DELETED)] = 0;
	expect_open(&task, name, here("dir"), O_TMPFILE | O_RDWR, 0600, fd);

	MUST(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	expect_path(&task, "LinkatFrom", "LF", name, AT_SYMLINK_FOLLOW);
	expect_path(&task, "LinkTo", "LT", here("named"), -1);
	leave(&task, 0);
}
