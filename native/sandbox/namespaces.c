// SPDX-License-Identifier: Apache-2.0
/*
 * Namespaces of the program's own: clone() made them. Users: this user alone, under the same number.
 * Mounts: all read-only, with devices in /dev alone (not /dev/pts); the scratch directory is memory. Processes: this one is the first, and with
 * it all others end. Network: none, not even the machine itself.
 *
 * Where mounts may not be changed (a container, AppArmor) what is there stays unchanged: Landlock and
 * seccomp alone keep the promise of the sandbox. These are a second wall.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#define RECURSIVE 0x8000u /* AT_RECURSIVE */
#define READ_ONLY 1u /* MOUNT_ATTR_RDONLY */
#define NO_SETUID 2u /* MOUNT_ATTR_NOSUID */
#define NO_DEVICES 4u /* MOUNT_ATTR_NODEV */

/* struct mount_attr of linux/mount.h, which older headers lack */
struct attributes {
	uint64_t set;
	uint64_t clear;
	uint64_t propagation;
	uint64_t userns_fd;
};

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_put = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return is_put;
}

/* Only this user is in the namespace; files of others look like those of nobody. */
static bool map_user(uid_t uid, gid_t gid)
{
	char uids[64], gids[64];

	snprintf(uids, sizeof(uids), "%u %u 1\n", uid, uid);
	snprintf(gids, sizeof(gids), "%u %u 1\n", gid, gid);
	return put("/proc/self/setgroups", "deny") && put("/proc/self/uid_map", uids) &&
	       put("/proc/self/gid_map", gids);
}

static bool mount_scratch(const struct sandbox *box)
{
	char data[128];

	snprintf(data, sizeof(data), "size=64m,nr_inodes=16384,mode=700,uid=%u,gid=%u",
		 box->changes_user ? box->uid : geteuid(), box->changes_user ? box->gid : getegid());
	return mount("scratch", box->scratch, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, data) == 0;
}

static bool is_unmapped(uid_t before)
{
	return geteuid() != before;
}

bool namespaces_enter(struct sandbox *box)
{
	struct attributes closed = { .set = READ_ONLY | NO_SETUID };
	struct attributes open = { .clear = READ_ONLY }, devices = { .clear = NO_DEVICES };

	if (!box->changes_user && !map_user(box->uid, box->gid))
		return false;
	if (!box->changes_user && is_unmapped(box->uid))
		return false;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return true; /* mounts stay unchanged */
	box->has_scratch = box->scratch && mount_scratch(box);
	mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL); /* or the old one */
	if (mount("/dev", "/dev", NULL, MS_BIND | MS_REC, NULL) == 0)
		closed.set |= NO_DEVICES; /* terminals, wherever they are mounted */
	if (syscall(SYS_mount_setattr, AT_FDCWD, "/", RECURSIVE, &closed, sizeof(closed)) == 0 &&
	    closed.set & NO_DEVICES)
		syscall(SYS_mount_setattr, AT_FDCWD, "/dev", 0, &devices, sizeof(devices));
	if (box->has_scratch)
		box->has_scratch = syscall(SYS_mount_setattr, AT_FDCWD, box->scratch, 0, &open,
					   sizeof(open)) == 0;
	return true;
}
