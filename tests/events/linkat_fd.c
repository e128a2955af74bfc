// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * linkat with AT_EMPTY_PATH: the source is the descriptor itself.
 * needs: root
 */
#include "expect.h"

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	long fd;

	make_file("file");
	fd = MUST(open("file", O_RDONLY));
	expect_open(&task, here("file"), here("file"), O_RDONLY, 0, fd);
	MUST(syscall(SYS_linkat, (int)fd, "", AT_FDCWD, "new", AT_EMPTY_PATH));
	expect_path(&task, "LinkatFrom", "LF", here("file"), AT_EMPTY_PATH);
	expect_path(&task, "LinkTo", "LT", here("new"), -1);
	leave(&task, 0);
}
