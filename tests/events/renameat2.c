// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* renameat2: Rename2From carries the flags; exchanging prints one pair like any other. */
#include "expect.h"

static void expect_pair(struct task *task, const char *from, const char *to, int flags)
{
	expect_path(task, "Rename2From", "RF", from, flags);
	expect_path(task, "RenameTo", "RT", to, -1);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);

	make_file("a");
	make_file("b");
	MUST(syscall(SYS_renameat2, AT_FDCWD, "a", AT_FDCWD, "c", 0U));
	expect_pair(&task, here("a"), here("c"), 0);
	MUST(syscall(SYS_renameat2, AT_FDCWD, "c", AT_FDCWD, "b", RENAME_EXCHANGE));
	expect_pair(&task, here("c"), here("b"), RENAME_EXCHANGE);
	MUST(syscall(SYS_renameat2, AT_FDCWD, "c", AT_FDCWD, "d", RENAME_NOREPLACE));
	expect_pair(&task, here("c"), here("d"), RENAME_NOREPLACE);

	MUST_FAIL(syscall(SYS_renameat2, AT_FDCWD, "d", AT_FDCWD, "b", RENAME_NOREPLACE), EEXIST);
	expect_path(&task, "Rename2From", "RF", here("d"), RENAME_NOREPLACE);
	expect(&task, "RenameFailed|");
	MUST_FAIL(syscall(SYS_renameat2, AT_FDCWD, "d", AT_FDCWD, "x", RENAME_EXCHANGE), ENOENT);
	expect_path(&task, "Rename2From", "RF", here("d"), RENAME_EXCHANGE);
	expect(&task, "RenameFailed|");
	MUST_FAIL(syscall(SYS_renameat2, AT_FDCWD, "absent", AT_FDCWD, "x", 0U), ENOENT);
	expect(&task, "RenameFailed|");
	leave(&task, 0);
}
