// SPDX-License-Identifier: Apache-2.0
/* Records in the order of time, and those of programs that cannot open the shared memory. */
#include "records.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture/program.h"
#include "capture/report.h"
#include "library.h"

struct event *event_make(enum ring_kind kind, pid_t pid, uint64_t time_ns, size_t n_bytes)
{
	struct event *event = must_alloc(sizeof(*event) + n_bytes);

	memset(event, 0, sizeof(*event));
	event->head.kind = (uint16_t)kind;
	event->head.pid = (uint32_t)pid;
	event->head.time_ns = time_ns;
	return event;
}

void event_add_text(struct event *event, const char *text, size_t len)
{
	uint32_t n = (uint32_t)len;

	memcpy(event->bytes + event->n_bytes, &n, sizeof(n));
	memcpy(event->bytes + event->n_bytes + sizeof(n), text, n);
	event->n_bytes += (uint32_t)sizeof(n) + n;
}

/* ---- a binary heap by time, and of equal times by arrival ---- */

static struct event **heap;
static size_t n_events;
static size_t n_max;

static bool is_before(const struct event *a, const struct event *b)
{
	if (a->head.time_ns != b->head.time_ns)
		return a->head.time_ns < b->head.time_ns;
	return a->order < b->order;
}

void order_add(struct event *event)
{
	size_t at = n_events++;

	if (n_events > n_max) {
		n_max = n_max ? 2 * n_max : 1024;
		heap = must_realloc(heap, n_max * sizeof(*heap));
	}
	for (; at && is_before(event, heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = event;
}

static void sink(struct event *event)
{
	size_t at = 0;
	size_t child;

	while ((child = 2 * at + 1) < n_events) {
		if (child + 1 < n_events && is_before(heap[child + 1], heap[child]))
			child++;
		if (!is_before(heap[child], event))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = event;
}

struct event *order_take(uint64_t limit)
{
	struct event *first;

	if (!n_events || heap[0]->head.time_ns > limit)
		return NULL;
	first = heap[0];
	if (--n_events)
		sink(heap[n_events]);
	return first;
}

/* ---- the socket ---- */

/*
 * A socket with an abstract name: it is reached from every PID, mount and user namespace, but not from
 * another network namespace. The kernel adds the number of the process that has sent, as this one sees it.
 */

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

/* `PATH` of one in another namespace, `PATH\0` of one whose limits leave no room. */
static struct event *make_outside(pid_t pid, const char *path, size_t n)
{
	struct event *event = event_make(RING_OUTSIDE, pid, monotonic_ns(), sizeof(uint32_t) + n);
	bool is_limited = n && !path[n - 1];

	event->head.args[0] = is_limited ? HIDDEN_LIMITED : HIDDEN_OUTSIDE;
	event_add_text(event, path, n - is_limited);
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
			receive(make_outside(sender->pid, path, (size_t)n));
	}
}
