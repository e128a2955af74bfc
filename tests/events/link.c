// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* link: the last name of the source is kept, a symlink is linked itself; the failed forms. */
#include "expect.h"

static void links(struct task *task, const char *from, const char *to, const char *abs_from,
		  const char *abs_to)
{
	MUST(link_call(from, to));
	expect_link_from(task, abs_from);
	expect_path(task, "LinkTo", "LT", abs_to, -1);
}

static void fails(struct task *task, const char *from, const char *to, int error)
{
	must_fail(link_call(from, to), error, "link");
	expect(task, "LinkFailed|");
}

static void fails_after_source(struct task *task, const char *from, const char *to,
			       const char *abs_from, int error)
{
	must_fail(link_call(from, to), error, "link after source");
	expect_link_from(task, abs_from);
	expect(task, "LinkFailed|");
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);

	make_dir("dir");
	make_file("a");
	MUST(symlink("dir", "dirlink"));
	expect_symlink(&task, "dir", here("dir"), here("dirlink"));
	MUST(symlink("a", "alink"));
	expect_symlink(&task, "a", here("a"), here("alink"));

	links(&task, "a", "b", here("a"), here("b"));
	links(&task, here("b"), "dirlink/./c", here("b"), here("dir/c"));
	links(&task, "dirlink/c", here("dir/../d"), here("dir/c"), here("d"));
	links(&task, "alink", "alink2", here("alink"), here("alink2"));

	fails(&task, "absent", "x", ENOENT);
	fails(&task, "a/y", "x", ENOTDIR);
	fails(&task, WILD, "x", EFAULT);
	fails_after_source(&task, "a", "b", here("a"), EEXIST);
	fails_after_source(&task, "a", "absent/x", here("a"), ENOENT);
	fails_after_source(&task, "a", WILD, here("a"), EFAULT);
	fails_after_source(&task, "dir", "x", here("dir"), EPERM);
	leave(&task, 0);
}
