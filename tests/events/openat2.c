// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* openat2: flags and mode come from a structure; it prints the same Open. */
#include "expect.h"

#include <linux/openat2.h>

static long call(long dirfd, const char *path, struct open_how how)
{
	return syscall(SYS_openat2, (int)dirfd, path, &how, sizeof(how));
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC };
	struct {
		struct open_how how;
		uint64_t future;
	} larger = { .how = { .flags = O_RDONLY } };
	long dir, fd;

	make_dir("dir");
	make_file("dir/file");
	dir = MUST(call(AT_FDCWD, "dir", how));
	expect_open(&task, here("dir"), here("dir"), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, dir);

	how = (struct open_how){ .flags = O_CREAT | O_RDWR, .mode = 0751,
				 .resolve = RESOLVE_BENEATH };
	fd = MUST(call(dir, "new", how));
	expect_open(&task, here("dir/new"), here("dir/new"), O_CREAT | O_RDWR, 0751, fd);

	/* RESOLVE_IN_ROOT: "/" is the directory; the original path is still what was given */
	how = (struct open_how){ .flags = O_RDONLY, .resolve = RESOLVE_IN_ROOT };
	fd = MUST(call(dir, "/file", how));
	expect_open(&task, here("dir/file"), "/file", O_RDONLY, 0, fd);

	fd = MUST(syscall(SYS_openat2, (int)dir, "file", &larger, sizeof(larger)));
	expect_open(&task, here("dir/file"), here("dir/file"), O_RDONLY, 0, fd);

	how = (struct open_how){ .flags = O_RDONLY, .mode = 0644 };
	MUST_FAIL(call(dir, "file", how), EINVAL);
	how = (struct open_how){ .flags = O_RDONLY, .resolve = RESOLVE_BENEATH };
	MUST_FAIL(call(dir, "../dir/file", how), EXDEV);
	MUST_FAIL(syscall(SYS_openat2, (int)dir, "file", WILD, sizeof(how)), EFAULT);
	MUST_FAIL(syscall(SYS_openat2, (int)dir, WILD, &how, sizeof(how)), EFAULT);
	MUST_FAIL(syscall(SYS_openat2, (int)dir, "file", &how, 1), EINVAL);
	leave(&task, 0);
}
