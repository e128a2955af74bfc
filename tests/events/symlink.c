// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* symlink, symlinkat: target as given, what it leads to when that exists, path of the link. */
#include "expect.h"

static void links(struct task *task, const char *target, const char *path, const char *resolved,
		  const char *abs_path)
{
	MUST(symlink_call(target, path));
	expect_symlink(task, target, resolved, abs_path);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	long dir;

	make_dir("dir");
	make_dir("dir/sub");
	make_file("dir/file");
	make_file("top");

	links(&task, "top", "a", here("top"), here("a"));
	/* from where the link lies */
	links(&task, "file", "dir/b", here("dir/file"), here("dir/b"));
	links(&task, "../top", "dir/c", here("top"), here("dir/c"));
	links(&task, "dir/sub/../c", "d", here("top"), here("d"));
	links(&task, "absent", "e", NULL, here("e"));
	links(&task, "file", "f", NULL, here("f")); /* dir/file exists, ./file does not */
	links(&task, "dir", "g", here("dir"), here("g"));
	links(&task, "file", "g/./h", here("dir/file"), here("dir/h"));
	links(&task, "../../../../../../../../../../../../../../..", "i", "/", here("i"));
	links(&task, here("dir//file"), here("j"), here("dir/file"), here("j"));
	links(&task, "k", "k", NULL, here("k"));
	links(&task, "two\nlines", "l", NULL, here("l"));
	links(&task, repeat('t', 1801), "m", NULL, here("m"));
	links(&task, "top/", "n", NULL, here("n"));

	dir = MUST(open("dir", O_RDONLY));
	expect_open(&task, here("dir"), here("dir"), O_RDONLY, 0, dir);
	MUST(syscall(SYS_symlinkat, "file", (int)dir, "at"));
	expect_symlink(&task, "file", here("dir/file"), here("dir/at"));
	MUST(syscall(SYS_symlinkat, "/", AT_FDCWD, "root"));
	expect_symlink(&task, "/", "/", here("root"));

	MUST_FAIL(symlink_call("top", "a"), EEXIST);
	MUST_FAIL(symlink_call("top", "absent/a"), ENOENT);
	MUST_FAIL(symlink_call("", "o"), ENOENT);
	MUST_FAIL(symlink_call(WILD, "o"), EFAULT);
	MUST_FAIL(symlink_call("top", WILD), EFAULT);
	MUST_FAIL(syscall(SYS_symlinkat, "top", -1, "o"), EBADF);
	leave(&task, 0);
}
