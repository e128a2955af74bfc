// SPDX-License-Identifier: Apache-2.0
/*
 * Ways around the events that the module counts: io_uring, descriptors passed by SCM_RIGHTS and by
 * pidfd_getfd(), the mount calls with file descriptors. Prints how often each counter must count.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void check(long result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "around: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void ring(void)
{
	struct io_uring_params params = { 0 };

	check(syscall(SYS_io_uring_setup, 4, &params), "io_uring_setup");
	printf("io_uring 1\n");
}

static void pass_descriptor(void)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'x';
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	int sockets[2];

	check(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), "socketpair");
	*rights = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(rights), &sockets[0], sizeof(int));
	check(sendmsg(sockets[0], &message, 0), "sendmsg");
	check(recvmsg(sockets[1], &message, 0), "recvmsg");
}

static void fetch_descriptor(void)
{
	long pidfd = syscall(SYS_pidfd_open, getpid(), 0);

	check(pidfd, "pidfd_open");
	check(syscall(SYS_pidfd_getfd, pidfd, 0, 0), "pidfd_getfd");
}

static void mount_by_descriptors(void)
{
	check(syscall(SYS_fsopen, "tmpfs", 0), "fsopen");
	printf("new_mount_api 1\n");
}

int main(void)
{
	ring();
	pass_descriptor();
	fetch_descriptor();
	printf("passed_fds 2\n");
	mount_by_descriptors();
	return 0;
}
