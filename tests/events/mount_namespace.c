// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A file system that only this process sees: its paths are those of its own view. Mounts print
 * nothing without their option.
 * needs: root
 */
#include "expect.h"

#include <sys/mount.h>

static void copy(struct task *task, const char *from, const char *name)
{
	static char buffer[1 << 16];
	int flags = O_CREAT | O_WRONLY;
	long in = MUST(open(from, O_RDONLY)), out, n;

	expect_open(task, from, from, O_RDONLY, 0, in);
	out = MUST(open(name, flags, 0755));
	expect_open(task, here(name), here(name), flags, 0755, out);
	while ((n = MUST(read((int)in, buffer, sizeof(buffer)))))
		MUST(write((int)out, buffer, (size_t)n));
	MUST(close((int)in));
	expect(task, "Close|fd=%ld", in);
	MUST(close((int)out));
	expect(task, "Close|fd=%ld", out);
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);
	char *again[] = { "again", "--as", task.name, NULL };
	/* in a chroot the link leads out of it once the mounts are others */
	char *program = strdup(self());

	if (argc > 1)
		leave(&task, 4);
	make_dir("mnt");
	MUST(unshare(CLONE_NEWNS));
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	MUST(mount("none", "mnt", "tmpfs", 0, NULL));
	make_dir("mnt/dir");
	copy(&task, program, "mnt/dir/program");
	MUST(symlink("dir/program", "mnt/link"));
	expect_symlink(&task, "dir/program", here("mnt/dir/program"), here("mnt/link"));
	MUST(rename("mnt/dir/program", "mnt/dir/moved"));
	expect_path(&task, "RenameFrom", "RF", here("mnt/dir/program"), -1);
	expect_path(&task, "RenameTo", "RT", here("mnt/dir/moved"), -1);
	expect_exec(&task, here("mnt/dir/moved"), here("mnt/dir/moved"), again);
	MUST(execv("mnt/dir/moved", again));
}
