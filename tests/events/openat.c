// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* openat: relative to the working directory, to a descriptor, or absolute. */
#include "expect.h"

static long opens(struct task *task, long dirfd, const char *path, const char *resolved,
		  const char *original, int flags, unsigned int mode)
{
	long fd = must(syscall(SYS_openat, (int)dirfd, path, flags, mode), path);

	expect_open(task, resolved, original, flags, mode, fd);
	return fd;
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *file;
	long dir, pathfd;

	make_dir("dir");
	make_dir("dir/sub");
	make_file("dir/sub/file");
	file = here("dir/sub/file");
	dir = opens(&task, AT_FDCWD, "dir", here("dir"), here("dir"), O_RDONLY | O_DIRECTORY, 0);
	opens(&task, dir, "sub/file", file, file, O_RDONLY, 0);
	opens(&task, dir, "sub/../new", here("dir/new"), here("dir/sub/../new"),
	      O_CREAT | O_WRONLY, 0644);
	opens(&task, dir, ".", here("dir"), here("dir/."), O_RDONLY, 0);
	opens(&task, dir, "..", cwd(), here("dir/.."), O_RDONLY, 0);
	pathfd = opens(&task, dir, "sub", here("dir/sub"), here("dir/sub"), O_PATH, 0);
	opens(&task, pathfd, "file", file, file, O_RDWR, 0);
	/* an absolute path needs no directory, whatever the descriptor is */
	opens(&task, -1, file, file, file, O_RDONLY, 0);
	opens(&task, dir, file, file, file, O_RDONLY, 0);

	/* the directory has moved since: both paths are those of now */
	MUST(rename("dir", "moved"));
	expect_path(&task, "RenameFrom", "RF", here("dir"), -1);
	expect_path(&task, "RenameTo", "RT", here("moved"), -1);
	opens(&task, dir, "sub/file", here("moved/sub/file"), here("moved/sub/file"), O_RDONLY, 0);

	/* and the working directory may be another one */
	MUST(chdir("moved/sub"));
	opens(&task, AT_FDCWD, "../new", text("%s/new", link_of("/proc/self/fd/3")),
	      here("../new"), O_RDONLY, 0);

	MUST_FAIL(syscall(SYS_openat, -1, "file", O_RDONLY, 0), EBADF);
	MUST_FAIL(syscall(SYS_openat, AT_FDCWD, "absent", O_RDONLY, 0), ENOENT);
	MUST_FAIL(syscall(SYS_openat, AT_FDCWD, WILD, O_RDONLY, 0), EFAULT);
	MUST_FAIL(syscall(SYS_openat, dir, "", O_RDONLY, 0), ENOENT);
	leave(&task, 0);
}
