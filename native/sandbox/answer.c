// SPDX-License-Identifier: Apache-2.0
/*
 * What the program asks the supervisor: whether it may map code, and for files that it reads.
 *
 * Code. make's `load`, a compiler's plugin, LD_PRELOAD and modules of libc are libraries: mmap() with
 * PROT_EXEC. Code has to be root's, and nobody else may write it. A make maps none once it has asked
 * for its working directory, which it does before it reads makefiles.
 *
 * Files. The supervisor opens them, looks at what it got, and gives the program that descriptor: a
 * name is looked up once. Pipes, terminals and devices have readers of their own, and files of /proc
 * belong to other processes. Where root asked, a file that somebody else owns or may write is not read.
 *
 * Only the program itself is answered for, which has one thread; what it executes, where it may, is
 * held by Landlock and the other filter.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define NO_MAGIC_LINKS 2u /* RESOLVE_NO_MAGICLINKS */
#define IN_ROOT 16u /* RESOLVE_IN_ROOT */
#define MEMORY 1 /* the major number of these */
static const unsigned int devices[] = { 3, 5, 7, 8, 9 }; /* null, zero, full, random, urandom */
/* File systems that are not for files: processes, queues, terminals, what tracing takes away. */
static const long kernel_files[] = { 0x9fa0, 0x19800202, 0x1cd1, 0x74726163, 0x64626720 };
#define MAX_DENIED 8

static bool is_complete; /* the program has all its code */

/* struct open_how of linux/openat2.h */
struct how {
	uint64_t flags;
	uint64_t mode;
	uint64_t resolve;
};

static int open_of(pid_t pid, const char *what, int number)
{
	char path[64];

	if (number < 0)
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s/%d", (int)pid, what, number);
	return open(path, O_PATH | O_CLOEXEC);
}

/* ---- code ---- */

static bool is_code(const struct sandbox *box, pid_t pid, int fd)
{
	struct stat st;
	bool is_right = false;
	int file = open_of(pid, "fd", fd);

	if (file >= 0 && fstat(file, &st) == 0 && S_ISREG(st.st_mode))
		is_right = (st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH))) ||
			   (st.st_uid == box->code_owner && !(st.st_mode & S_IWOTH));
	if (file >= 0)
		close(file);
	return is_right;
}

static bool may_map(const struct sandbox *box, const struct seccomp_notif *call, pid_t program)
{
	const __u64 *arguments = call->data.args;

	if ((pid_t)call->pid != program && box->may == MAY_ALL)
		return true;
	if (((pid_t)call->pid == program && is_complete) || arguments[3] & MAP_ANONYMOUS)
		return false;
	return is_code(box, (pid_t)call->pid, (int)arguments[4]);
}

/* ---- files ---- */

/* Whether the program may read it; what root's own program reads is root's, or of the tree's owner. */
static bool may_read(const struct sandbox *box, int file)
{
	struct statfs system;
	struct stat st;
	bool is_private;
	size_t i;

	if (fstat(file, &st) < 0 || fstatfs(file, &system) < 0)
		return false;
	for (i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(MEMORY, devices[i]))
			return true;
	for (i = 0; i < sizeof(kernel_files) / sizeof(kernel_files[0]); i++)
		if (system.f_type == kernel_files[i])
			return false;
	if (!S_ISREG(st.st_mode) || !box->changes_user)
		return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
	is_private = !(st.st_mode & (S_IWGRP | S_IWOTH));
	if (st.st_uid == 0)
		return is_private;
	return st.st_uid == box->file_owner &&
	       (is_private || (st.st_gid == box->gid && !(st.st_mode & S_IWOTH)));
}

static void say_denied(const struct sandbox *box, const char *path)
{
	static unsigned int n_denied;
	char shown[PATH_MAX];
	size_t i;

	if (n_denied++ >= MAX_DENIED)
		return;
	snprintf(shown, sizeof(shown), "%s", path);
	for (i = 0; shown[i]; i++)
		if ((unsigned char)shown[i] < ' ')
			shown[i] = '?';
	report(box, "denied %s\n", shown);
}

/* The name that the call gives; false when it cannot be read. */
static bool read_name(pid_t pid, uint64_t address, char path[PATH_MAX])
{
	struct iovec here = { path, PATH_MAX - 1 };
	struct iovec there = { (void *)(uintptr_t)address, PATH_MAX - 1 };
	ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

	path[n > 0 ? n : 0] = '\0';
	errno = n > 0 ? ENAMETOOLONG : EFAULT;
	return n > 0 && strlen(path) < (size_t)n;
}

/* The file of a name, as an O_PATH descriptor; -1 and errno. */
static int look_up(pid_t pid, int folder, const char *path, unsigned int flags)
{
	bool is_absolute = *path == '/';
	struct how how = {
		.flags = O_PATH | O_CLOEXEC | (flags & (O_NOFOLLOW | O_DIRECTORY)),
		.resolve = NO_MAGIC_LINKS | (is_absolute ? IN_ROOT : 0),
	};
	int at = is_absolute ? open_of(pid, "root", -1) :
		 folder == AT_FDCWD ? open_of(pid, "cwd", -1) : open_of(pid, "fd", folder);
	int found, error;

	if (at < 0)
		return -1;
	found = (int)syscall(SYS_openat2, at, path, &how, sizeof(how));
	error = errno;
	close(at);
	errno = error;
	return found;
}

/* The descriptor that the program gets for a file of this process's; -1 and errno. */
static int hand_out(int listener, uint64_t id, int file, unsigned int flags)
{
	char path[64];
	struct seccomp_notif_addfd given = { .id = id, .newfd_flags = flags & O_CLOEXEC };
	int opened, number, error;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* not for a lease, either */
	if (opened < 0)
		return -1;
	fcntl(opened, F_SETFL, 0);
	given.srcfd = (__u32)opened;
	number = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &given);
	error = errno;
	close(opened);
	errno = error;
	return number;
}

/* A file that the program wants: its name is at an address of the program. */
struct opening {
	int folder;
	uint64_t name;
	unsigned int flags;
};

static int open_for(const struct sandbox *box, int listener, const struct seccomp_notif *call,
		    const struct opening *opening)
{
	char path[PATH_MAX];
	int file, number = -1, error;

	if (!read_name((pid_t)call->pid, opening->name, path))
		return -1;
	file = look_up((pid_t)call->pid, opening->folder, path, opening->flags);
	if (file < 0)
		return -1;
	if (may_read(box, file)) {
		number = hand_out(listener, call->id, file, opening->flags);
		error = errno;
	} else {
		say_denied(box, path);
		error = EACCES;
	}
	close(file);
	errno = error;
	return number;
}

/* Whether the supervisor opens a file for this call; the kernel does what Landlock denies or O_PATH. */
static bool is_opening(const struct seccomp_notif *call, struct opening *opening)
{
	const __u64 *arguments = call->data.args;

	*opening = (struct opening){ (int)arguments[0], arguments[1], (unsigned int)arguments[2] };
	if (call->data.nr != SYS_openat) {
#ifdef SYS_open
		if (call->data.nr != SYS_open)
			return false;
		*opening = (struct opening){ AT_FDCWD, arguments[0], (unsigned int)arguments[1] };
#else
		return false;
#endif
	}
	return !(opening->flags & (O_CREAT | O_PATH));
}

/* ---- any question ---- */

void answer(const struct sandbox *box, int listener, pid_t program)
{
	struct seccomp_notif call;
	struct seccomp_notif_resp reply = { 0 };
	struct opening opening;
	bool is_own;

	memset(&call, 0, sizeof(call));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
		return; /* it ended */
	is_own = (pid_t)call.pid == program;
	reply.id = call.id;
	if (is_own && is_opening(&call, &opening)) {
		reply.val = open_for(box, listener, &call, &opening);
		reply.error = reply.val < 0 ? -errno : 0;
		reply.val = reply.val < 0 ? 0 : reply.val;
	} else if (call.data.nr == SYS_mmap && !may_map(box, &call, program)) {
		reply.error = -EACCES;
	} else {
		if (is_own && call.data.nr == SYS_getcwd)
			is_complete = box->may != MAY_BELOW;
		else if (is_own && call.data.nr == SYS_execve)
			is_complete = false; /* make executes itself again when makefiles changed */
		reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	}
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}
