// SPDX-License-Identifier: Apache-2.0
/*
 * Which code the program may map. make's `load`, a compiler's plugin, LD_PRELOAD and modules of libc
 * are libraries: mmap() with PROT_EXEC. It waits until the supervisor has looked at the file: code is
 * root's, and nobody else can write it. The program has one thread until foreign code runs in it, so
 * the descriptor is still that file when the call goes on.
 *
 * Of a program that may execute whatever it finds only its own process is asked for.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ARGUMENT_FLAGS = 3, /* of mmap() */
	ARGUMENT_FD = 4,
};

static bool is_of_root(const struct sandbox *box, pid_t pid, int fd)
{
	char path[64];
	struct stat st;
	bool is_right;
	int file;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	file = open(path, O_PATH | O_CLOEXEC);
	is_right = file >= 0 && fstat(file, &st) == 0 && S_ISREG(st.st_mode) &&
		   ((st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH))) ||
		    (st.st_uid == box->owner && !(st.st_mode & S_IWOTH)));
	if (file >= 0)
		close(file);
	return is_right;
}

void code_answer(const struct sandbox *box, int listener, pid_t program)
{
	struct seccomp_notif call;
	struct seccomp_notif_resp answer = { 0 };
	bool is_allowed;

	memset(&call, 0, sizeof(call));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
		return; /* it ended */
	is_allowed = (box->may == MAY_ALL && (pid_t)call.pid != program) ||
		     (!(call.data.args[ARGUMENT_FLAGS] & MAP_ANONYMOUS) &&
		      is_of_root(box, (pid_t)call.pid, (int)call.data.args[ARGUMENT_FD]));
	answer.id = call.id;
	if (is_allowed)
		answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else
		answer.error = -EACCES;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}
