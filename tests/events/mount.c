// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * mount and umount in a mount namespace of their own, and what is mounted over what was mounted there.
 * options: --mounts
 * needs: root
 */
#include "expect.h"

#include <sys/mount.h>

static void expect_mount(struct task *task, const char *source, const char *target,
			 const char *type, unsigned long flags)
{
	char sizes[2][64] = { "", "" };

	if (source)
		snprintf(sizes[0], sizeof(sizes[0]), "sourcenamesize=%zu,", strlen(source));
	if (type)
		snprintf(sizes[1], sizeof(sizes[1]), "typenamesize=%zu,", strlen(type));
	expect(task, "Mount|%stargetnamesize=%zu,%sflags=%lu", sizes[0], strlen(target), sizes[1],
	       flags);
	if (source)
		expect_string(task, "MS", source);
	expect_string(task, "MT", target);
	if (type)
		expect_string(task, "MX", type);
}

static void expect_umount(struct task *task, const char *target, int flags)
{
	expect(task, "Umount|targetnamesize=%zu,flags=%d", strlen(target), flags);
	expect_string(task, "MT", target);
}

static void inside(struct task *task)
{
	long fd = MUST(open("mnt/file", O_CREAT | O_RDWR, 0644));

	expect_open(task, here("mnt/file"), here("mnt/file"), O_CREAT | O_RDWR, 0644, fd);
	MUST(close((int)fd));
	expect(task, "Close|fd=%ld", fd);
	MUST(rename("mnt/file", "mnt/moved"));
	expect_path(task, "RenameFrom", "RF", here("mnt/file"), -1);
	expect_path(task, "RenameTo", "RT", here("mnt/moved"), -1);
	MUST(link("mnt/moved", "mnt/linked"));
	expect_link_from(task, here("mnt/moved"));
	expect_path(task, "LinkTo", "LT", here("mnt/linked"), -1);
	MUST(symlink("moved", "mnt/sym"));
	expect_symlink(task, "moved", here("mnt/moved"), here("mnt/sym"));
}

static void fail(struct task *task)
{
	MUST_FAIL(mount("none", "mnt", "no-such-type", 0, NULL), ENODEV);
	expect_mount(task, "none", here("mnt"), "no-such-type", 0);
	expect(task, "MountFailed|");
	MUST_FAIL(umount2("dir", 0), EINVAL);
	expect_umount(task, here("dir"), 0);
	expect(task, "UmountFailed|");
	MUST_FAIL(umount2("absent", MNT_DETACH), ENOENT);
	expect(task, "UmountFailed|");
	MUST_FAIL(umount2(WILD, 0), EFAULT);
	expect(task, "UmountFailed|");
}

int main(int argc, char **argv)
{
	struct task task = expect_start(argc, argv);

	make_dir("mnt");
	make_dir("dir");
	MUST(symlink("mnt", "mntlink"));
	expect_symlink(&task, "mnt", here("mnt"), here("mntlink"));
	MUST(unshare(CLONE_NEWNS));
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	expect_mount(&task, NULL, "/", NULL, MS_REC | MS_PRIVATE);
	MUST(mount("any\nstring", "mntlink", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m"));
	expect_mount(&task, "any\nstring", here("mnt"), "tmpfs", MS_NOSUID | MS_NODEV);
	inside(&task);
	MUST(mount("mnt", here("dir"), NULL, MS_BIND, NULL));
	expect_mount(&task, "mnt", here("dir"), NULL, MS_BIND);
	MUST(mount("", "dir", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL));
	expect_mount(&task, "", here("dir"), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY);
	MUST(umount2("dir", MNT_DETACH));
	expect_umount(&task, here("dir"), MNT_DETACH);
	MUST(umount2("./mnt", 0));
	expect_umount(&task, here("mnt"), 0);
#ifdef SYS_umount
	MUST(mount("again", "mnt", "tmpfs", 0, NULL));
	expect_mount(&task, "again", here("mnt"), "tmpfs", 0);
	MUST(syscall(SYS_umount, "mnt"));
	expect_umount(&task, here("mnt"), 0);
#endif
	fail(&task);
	leave(&task, 0);
}
