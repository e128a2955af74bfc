// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* renameat: each path relative to a descriptor, the working directory, or absolute. */
#include "expect.h"

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	long from, to;

	make_dir("from");
	make_dir("to");
	make_file("from/a");
	from = MUST(open("from", O_RDONLY));
	expect_open(&task, here("from"), here("from"), O_RDONLY, 0, from);
	to = MUST(open("to", O_PATH));
	expect_open(&task, here("to"), here("to"), O_PATH, 0, to);

	MUST(syscall(SYS_renameat, (int)from, "a", (int)to, "b"));
	expect_path(&task, "RenameFrom", "RF", here("from/a"), -1);
	expect_path(&task, "RenameTo", "RT", here("to/b"), -1);
	MUST(syscall(SYS_renameat, -1, here("to/b"), AT_FDCWD, "c"));
	expect_path(&task, "RenameFrom", "RF", here("to/b"), -1);
	expect_path(&task, "RenameTo", "RT", here("c"), -1);
	MUST(syscall(SYS_renameat, (int)to, "../c", (int)from, "../from/d"));
	expect_path(&task, "RenameFrom", "RF", here("c"), -1);
	expect_path(&task, "RenameTo", "RT", here("from/d"), -1);

	MUST_FAIL(syscall(SYS_renameat, (int)from, "d", -1, "x"), EBADF);
	expect_path(&task, "RenameFrom", "RF", here("from/d"), -1);
	expect(&task, "RenameFailed|");
	MUST_FAIL(syscall(SYS_renameat, -1, "d", (int)to, "x"), EBADF);
	expect(&task, "RenameFailed|");
	MUST_FAIL(syscall(SYS_renameat, (int)from, "absent", (int)to, "x"), ENOENT);
	expect(&task, "RenameFailed|");
	leave(&task, 0);
}
