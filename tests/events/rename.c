// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* rename: both paths absolute, directories resolved, last name kept; the failed forms. */
#include "expect.h"

static void renames(struct task *task, const char *from, const char *to, const char *abs_from,
		    const char *abs_to)
{
	MUST(rename_call(from, to));
	expect_path(task, "RenameFrom", "RF", abs_from, -1);
	expect_path(task, "RenameTo", "RT", abs_to, -1);
}

static void fails(struct task *task, const char *from, const char *to, int error)
{
	must_fail(rename_call(from, to), error, "rename");
	expect(task, "RenameFailed|");
}

static void fails_after_source(struct task *task, const char *from, const char *to,
			       const char *abs_from, int error)
{
	must_fail(rename_call(from, to), error, to);
	expect_path(task, "RenameFrom", "RF", abs_from, -1);
	expect(task, "RenameFailed|");
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);

	make_dir("dir");
	make_dir("other");
	make_dir("full");
	make_file("full/file");
	make_file("a");
	MUST(symlink("dir", "dirlink"));
	expect_symlink(&task, "dir", here("dir"), here("dirlink"));

	renames(&task, "a", "b", here("a"), here("b"));
	renames(&task, here("b"), here("c"), here("b"), here("c"));
	renames(&task, "./c", "dirlink//d", here("c"), here("dir/d"));
	renames(&task, "dir/../dirlink/d", "other/../e", here("dir/d"), here("e"));
	renames(&task, "dir/", "dir2/", here("dir"), here("dir2"));
	renames(&task, "dir2", "dir", here("dir2"), here("dir"));
	/* the link itself */
	renames(&task, "dirlink", "dirlink2", here("dirlink"), here("dirlink2"));
	make_file("f");
	renames(&task, "e", "f", here("e"), here("f")); /* replaces */
	renames(&task, "f", "f", here("f"), here("f"));

	fails(&task, "absent", "x", ENOENT);
	fails(&task, "absent/y", "x", ENOENT);
	fails(&task, "f/y", "x", ENOTDIR);
	fails(&task, WILD, "x", EFAULT);
	fails_after_source(&task, "f", "absent/x", here("f"), ENOENT);
	fails_after_source(&task, "f", WILD, here("f"), EFAULT);
	fails_after_source(&task, "dirlink2/../f", "dir", here("f"), EISDIR);
	fails_after_source(&task, "dir", "full", here("dir"), ENOTEMPTY);
	fails_after_source(&task, "dir", "dir/sub", here("dir"), EINVAL);
	fails_after_source(&task, "f", "/proc/x", here("f"), EXDEV);
	leave(&task, 0);
}
