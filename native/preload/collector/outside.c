// SPDX-License-Identifier: Apache-2.0
/*
 * A socket with an abstract name: it is reached from every PID, mount and user namespace, but not from
 * another network namespace. The kernel tells which process has sent, in the numbers of this one.
 */
#include "outside.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "report.h"
#include "tracer.h"

/* At a time: other users can send without end, and the records of the build come first. */
#define MAX_TAKEN 256

static int listener = -1;

/* Another user may have taken the name, to keep programs from being counted. */
static void warn_of_socket(const char *variable, size_t n)
{
	report_warn("programs in other namespaces are not counted: socket @%.*s: %s", (int)n, variable,
		    strerror(errno));
}

void outside_open(const char *variable)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = strcspn(variable, ":");
	int on = 1;

	if (n + 1 > RING_SOCKET_MAX)
		return;
	memcpy(address.sun_path + 1, variable, n);
	listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener < 0) {
		warn_of_socket(variable, n);
		return;
	}
	if (setsockopt(listener, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    bind(listener, (struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0) {
		warn_of_socket(variable, n);
		close(listener);
		listener = -1;
	}
}

int outside_fd(void)
{
	return listener;
}

static const struct ucred *sender_of(struct msghdr *message)
{
	struct cmsghdr *head = CMSG_FIRSTHDR(message);

	if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_CREDENTIALS)
		return NULL;
	return (const struct ucred *)CMSG_DATA(head);
}

static struct event *make_event(const struct ucred *sender, const char *path, size_t n)
{
	struct event *event = must_alloc(sizeof(*event) + sizeof(uint32_t) + n);
	uint32_t length = (uint32_t)n;

	memset(event, 0, sizeof(*event));
	event->head.kind = RING_OUTSIDE;
	event->head.pid = (uint32_t)sender->pid;
	event->head.time_ns = monotonic_ns();
	event->n_bytes = (uint32_t)(sizeof(length) + n);
	memcpy(event->bytes, &length, sizeof(length));
	memcpy(event->bytes + sizeof(length), path, n);
	return event;
}

/* Other users of the machine reach the socket too, and are not believed. */
void outside_take(void (*receive)(struct event *event))
{
	char path[PATH_MAX];
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	int i;

	for (i = 0; listener >= 0 && i < MAX_TAKEN; i++) {
		struct iovec piece = { path, sizeof(path) };
		struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1,
					  .msg_control = &control,
					  .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(listener, &message, MSG_DONTWAIT);
		const struct ucred *sender = n < 0 ? NULL : sender_of(&message);

		if (n < 0 && errno != EINTR)
			return;
		if (sender && sender->pid > 0 && sender->uid == getuid())
			receive(make_event(sender, path, (size_t)n));
	}
}
