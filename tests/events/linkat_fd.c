// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * linkat with AT_EMPTY_PATH: the source is the descriptor itself.
 * needs: root
 */
#include "expect.h"

static void expect_pair(struct task *task, const char *from, const char *to, int flags)
{
	expect_path(task, "LinkatFrom", "LF", from, flags);
	expect_path(task, "LinkTo", "LT", to, -1);
}

static void link_temporary(struct task *task)
{
	static const char deleted[] = " (deleted)";
	long fd = MUST(syscall(SYS_openat, AT_FDCWD, "dir", O_TMPFILE | O_RDWR, 0600));
	char *name = link_of(text("/proc/self/fd/%ld", fd));

	name[strlen(name) - strlen(deleted)] = 0;
	expect_open(task, name, here("dir"), O_TMPFILE | O_RDWR, 0600, fd);
	MUST_FAIL(syscall(SYS_linkat, (int)fd, "", AT_FDCWD, "new", AT_EMPTY_PATH), EEXIST);
	expect_path(task, "LinkatFrom", "LF", name, AT_EMPTY_PATH);
	expect(task, "LinkFailed|");
	MUST(syscall(SYS_linkat, (int)fd, "", AT_FDCWD, "dir/made", AT_EMPTY_PATH));
	expect_pair(task, name, here("dir/made"), AT_EMPTY_PATH);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	long fd;

	make_dir("dir");
	make_file("file");
	fd = MUST(open("file", O_RDONLY));
	expect_open(&task, here("file"), here("file"), O_RDONLY, 0, fd);
	MUST(syscall(SYS_linkat, (int)fd, "", AT_FDCWD, "new", AT_EMPTY_PATH));
	expect_pair(&task, here("file"), here("new"), AT_EMPTY_PATH);
	MUST(syscall(SYS_linkat, (int)fd, "", AT_FDCWD, "both", AT_EMPTY_PATH | AT_SYMLINK_FOLLOW));
	expect_pair(&task, here("file"), here("both"), AT_EMPTY_PATH | AT_SYMLINK_FOLLOW);
	link_temporary(&task);

	/* a name that is there is not followed */
	MUST(symlink("file", "sym"));
	expect_symlink(&task, "file", here("file"), here("sym"));
	MUST(syscall(SYS_linkat, AT_FDCWD, "sym", AT_FDCWD, "sym2", AT_EMPTY_PATH));
	expect_pair(&task, here("sym"), here("sym2"), AT_EMPTY_PATH);
	leave(&task, 0);
}
