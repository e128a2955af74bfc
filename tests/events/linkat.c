// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* linkat: LinkatFrom carries the flags; a source that is followed is the file it leads to. */
#include "expect.h"

static void expect_pair(struct task *task, const char *from, const char *to, int flags)
{
	expect_path(task, "LinkatFrom", "LF", from, flags);
	expect_path(task, "LinkTo", "LT", to, -1);
}

static void fail(struct task *task, long dir)
{
	MUST_FAIL(syscall(SYS_linkat, (int)dir, "file", AT_FDCWD, "plain", 0), EEXIST);
	expect_path(task, "LinkatFrom", "LF", here("dir/file"), 0);
	expect(task, "LinkFailed|");
	MUST_FAIL(syscall(SYS_linkat, (int)dir, "absent", AT_FDCWD, "x", 0), ENOENT);
	expect(task, "LinkFailed|");
	MUST_FAIL(syscall(SYS_linkat, -1, "file", AT_FDCWD, "x", 0), EBADF);
	expect(task, "LinkFailed|");
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	long dir;

	make_dir("dir");
	make_file("dir/file");
	MUST(symlink("dir/file", "sym"));
	expect_symlink(&task, "dir/file", here("dir/file"), here("sym"));
	dir = MUST(open("dir", O_RDONLY));
	expect_open(&task, here("dir"), here("dir"), O_RDONLY, 0, dir);

	MUST(syscall(SYS_linkat, (int)dir, "file", AT_FDCWD, "plain", 0));
	expect_pair(&task, here("dir/file"), here("plain"), 0);
	MUST(syscall(SYS_linkat, AT_FDCWD, "sym", (int)dir, "sym2", 0));
	expect_pair(&task, here("sym"), here("dir/sym2"), 0);
	MUST(syscall(SYS_linkat, AT_FDCWD, "sym", AT_FDCWD, "followed", AT_SYMLINK_FOLLOW));
	expect_pair(&task, here("dir/file"), here("followed"), AT_SYMLINK_FOLLOW);
	MUST(syscall(SYS_linkat, AT_FDCWD, "dir/file", AT_FDCWD, "dir/hard", AT_SYMLINK_FOLLOW));
	expect_pair(&task, here("dir/file"), here("dir/hard"), AT_SYMLINK_FOLLOW);
	MUST(syscall(SYS_linkat, (int)dir, "file", AT_FDCWD, "of_dir", AT_SYMLINK_FOLLOW));
	expect_pair(&task, here("dir/file"), here("of_dir"), AT_SYMLINK_FOLLOW);
	MUST(syscall(SYS_linkat, (int)dir, "../dir/sym2", (int)dir, "lost", 0));
	expect_pair(&task, here("dir/sym2"), here("dir/lost"), 0);
	MUST(symlink("../sym", "dir/twice"));
	expect_symlink(&task, "../sym", here("dir/file"), here("dir/twice"));
	MUST(syscall(SYS_linkat, AT_FDCWD, "dir/twice", AT_FDCWD, "dir/end", AT_SYMLINK_FOLLOW));
	expect_pair(&task, here("dir/file"), here("dir/end"), AT_SYMLINK_FOLLOW);
	MUST_FAIL(syscall(SYS_linkat, AT_FDCWD, "dir/twice", AT_FDCWD, "plain", AT_SYMLINK_FOLLOW), EEXIST);
	expect_path(&task, "LinkatFrom", "LF", here("dir/file"), AT_SYMLINK_FOLLOW);
	expect(&task, "LinkFailed|");
	fail(&task, dir);
	leave(&task, 0);
}
