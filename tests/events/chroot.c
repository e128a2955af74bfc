// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Under chroot every path is the one that the process itself sees.
 * needs: root
 */
#include "expect.h"

static void copy_self(struct task *task, const char *name)
{
	static char buffer[1 << 16];
	int flags = O_CREAT | O_WRONLY;
	long in = MUST(open(self(), O_RDONLY)), out, n;

	expect_open(task, self(), self(), O_RDONLY, 0, in);
	out = MUST(open(name, flags, 0755));
	expect_open(task, here(name), here(name), flags, 0755, out);
	while ((n = MUST(read((int)in, buffer, sizeof(buffer)))))
		MUST(write((int)out, buffer, (size_t)n));
	MUST(close((int)in));
	expect(task, "Close|fd=%ld", in);
	MUST(close((int)out));
	expect(task, "Close|fd=%ld", out);
}

static void opens(struct task *task, int dirfd, const char *path, const char *resolved,
		  const char *original)
{
	long fd = must(openat(dirfd, path, O_RDONLY), path);

	expect_open(task, resolved, original, O_RDONLY, 0, fd);
}

static void inside(struct task *task)
{
	opens(task, AT_FDCWD, "/file", "/file", "/file");
	opens(task, AT_FDCWD, "/../../file", "/file", "/../../file");
	opens(task, AT_FDCWD, "dir", "/dir", "//dir");
	opens(task, AT_FDCWD, "/link", "/file", "/link");
	MUST(chdir("/dir"));
	opens(task, AT_FDCWD, "../file", "/file", "/dir/../file");
	MUST(rename("/file", "renamed"));
	expect_path(task, "RenameFrom", "RF", "/file", -1);
	expect_path(task, "RenameTo", "RT", "/dir/renamed", -1);
	MUST(link("renamed", "/linked"));
	expect_link_from(task, "/dir/renamed");
	expect_path(task, "LinkTo", "LT", "/linked", -1);
	MUST(symlink("/linked", "sym"));
	expect_symlink(task, "/linked", "/linked", "/dir/sym");
	/* exists outside, not here */
	MUST(symlink("/dev/null", "null"));
	expect_symlink(task, "/dev/null", NULL, "/dir/null");
	MUST_FAIL(open("/dev/null", O_RDONLY), ENOENT);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *again[] = { "again", "--as", task.name, NULL };

	if (argc > 1)
		leave(&task, 4);
	make_dir("jail");
	make_dir("jail/dir");
	make_file("jail/file");
	MUST(symlink("/file", "jail/link"));
	expect_symlink(&task, "/file", NULL, here("jail/link"));
	copy_self(&task, "jail/program");
	MUST(chroot("jail"));
	MUST(chdir("/"));
	inside(&task);
	expect_exec(&task, "/program", "/program", again);
	MUST(execv("../program", again));
}
