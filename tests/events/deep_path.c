// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A working directory whose path is longer than PATH_MAX: names below it are left out, for no call can say
 * what they are; what is reached from there by other names has its own.
 *
 * warns: names have no resolved path
 */
#include "expect.h"

#define DIR_BYTES 200
#define N_DIRS 25 /* more than PATH_MAX */

static void go_down(void)
{
	char *name = repeat('d', DIR_BYTES);

	for (int i = 0; i < N_DIRS; i++) {
		make_dir(name);
		MUST(syscall(SYS_chdir, name));
	}
}

static void expect_closed(struct task *task, long fd)
{
	MUST(close((int)fd));
	expect(task, "Close|fd=%ld", fd);
}

static void use_names(struct task *task, long dir)
{
	long fd = MUST(open("file", O_CREAT | O_WRONLY, 0600));

	expect_closed(task, fd);
	fd = MUST(openat((int)dir, "file", O_RDONLY));
	expect_closed(task, fd);
	MUST(rename_call("file", "renamed"));
	MUST(syscall(SYS_renameat2, (int)dir, "renamed", (int)dir, "file", 0));
	MUST(link_call("file", "linked"));
	MUST(syscall(SYS_linkat, (int)dir, "file", AT_FDCWD, "linked2", AT_SYMLINK_FOLLOW));
	MUST(symlink_call("file", "symlink"));
	MUST_FAIL(rename_call("absent", "other"), ENOENT);
	expect(task, "RenameFailed|");
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *top = here("top");
	long dir, fd;

	go_down();
	dir = MUST(open(".", O_RDONLY | O_DIRECTORY));
	use_names(&task, dir);
	fd = MUST(open(top, O_CREAT | O_WRONLY, 0600));
	expect_open(&task, top, top, O_CREAT | O_WRONLY, 0600, fd);
	MUST(rename_call(top, text("%s2", top)));
	expect_path(&task, "RenameFrom", "RF", top, -1);
	expect_path(&task, "RenameTo", "RT", text("%s2", top), -1);
	fd = MUST(open("../../../../../../../../../../../../../../../../../../../../../../../../../top2", O_RDONLY));
	expect_open(&task, text("%s2", top), text("%s2", top), O_RDONLY, 0, fd);
	leave(&task, 0);
}
