// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* open: original path kept, resolved path followed; a failed open prints nothing. */
#include "expect.h"

static void opens(struct task *task, const char *path, const char *resolved, const char *original,
		  int flags, unsigned int mode)
{
	long fd = must(open_call(path, flags, mode), path);

	expect_open(task, resolved, original, flags, mode, fd);
	MUST(close((int)fd));
	expect(task, "Close|fd=%ld", fd);
}

static void make_tree(void)
{
	make_dir("dir");
	make_dir("dir/sub");
	make_file("dir/file");
	MUST(mkfifo("fifo", 0644));
}

/* symlink() is traced, so these are expected lines too */
static void make_links(struct task *task)
{
	MUST(symlink("dir/file", "link"));
	expect_symlink(task, "dir/file", here("dir/file"), here("link"));
	MUST(symlink("dir", "dirlink"));
	expect_symlink(task, "dir", here("dir"), here("dirlink"));
	MUST(symlink("link", "link2"));
	expect_symlink(task, "link", here("dir/file"), here("link2"));
	MUST(symlink("nowhere", "dangling"));
	expect_symlink(task, "nowhere", NULL, here("dangling"));
	MUST(symlink("loop", "loop"));
	expect_symlink(task, "loop", NULL, here("loop"));
}

static void succeed(struct task *task)
{
	const char *file = here("dir/file");

	opens(task, "dir/file", file, file, O_RDONLY, 0);
	opens(task, file, file, file, O_RDWR | O_APPEND | O_CLOEXEC, 0);
	opens(task, "link", file, here("link"), O_WRONLY | O_TRUNC, 0);
	opens(task, "link2", file, here("link2"), O_RDONLY | O_NONBLOCK, 0);
	opens(task, "dirlink/file", file, here("dirlink/file"), O_RDONLY, 0);
	opens(task, "./dir//sub/../file", file, here("./dir//sub/../file"), O_RDONLY, 0);
	opens(task, "dirlink/", here("dir"), here("dirlink/"), O_RDONLY | O_DIRECTORY, 0);
	opens(task, ".", cwd(), here("."), O_RDONLY, 0);
	opens(task, "dir/sub/..", here("dir"), here("dir/sub/.."), O_RDONLY, 0);
	opens(task, "/", "/", "/", O_RDONLY, 0);
	opens(task, "//dev///null", "/dev/null", "//dev///null", O_RDWR, 0);
	opens(task, "fifo", here("fifo"), here("fifo"), O_RDWR, 0);
	opens(task, "new", here("new"), here("new"), O_CREAT | O_EXCL | O_WRONLY, 0640);
	opens(task, "new", here("new"), here("new"), O_CREAT | O_RDONLY, 04755);
	opens(task, "dangling", here("nowhere"), here("dangling"), O_CREAT | O_RDWR, 0600);
	/* the kernel ignores bits that it does not know; the line shows what was asked */
	opens(task, file, file, file, O_RDONLY | 0x8000000, 0);
}

static void fail(void)
{
	MUST_FAIL(open_call("absent", O_RDONLY, 0), ENOENT);
	MUST_FAIL(open_call("dir/file/x", O_RDONLY, 0), ENOTDIR);
	MUST_FAIL(open_call("new", O_CREAT | O_EXCL | O_WRONLY, 0640), EEXIST);
	MUST_FAIL(open_call("loop", O_RDONLY, 0), ELOOP);
	MUST_FAIL(open_call("link", O_RDONLY | O_NOFOLLOW, 0), ELOOP);
	MUST_FAIL(open_call("dir", O_WRONLY, 0), EISDIR);
	MUST_FAIL(open_call("", O_RDONLY, 0), ENOENT);
	MUST_FAIL(open_call(WILD, O_RDONLY, 0), EFAULT);
	MUST_FAIL(open_call(repeat('x', 256), O_RDONLY, 0), ENAMETOOLONG);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);

	make_tree();
	make_links(&task);
	succeed(&task);
	fail();
	/* directory and name are joined by a slash, whatever the directory ends with */
	MUST(chdir("/"));
	opens(&task, "dev/null", "/dev/null", "//dev/null", O_RDONLY, 0);
	leave(&task, 0);
}
