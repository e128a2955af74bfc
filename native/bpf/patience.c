// SPDX-License-Identifier: Apache-2.0
/*
 * Opens names without waiting for a program that serves files (FUSE): its answer may never come, and
 * the loop that takes the kernel's records has one thread.
 *
 * A cached name is opened directly: openat2() with RESOLVE_CACHED (Linux 5.12) fails if it would have to
 * wait. A thread opens any other. When it has not answered within a second, it is left alone, and from
 * then on names that are not cached stay as they were written.
 */
#include "bpf/patience.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

#define PATIENCE_S 1

/* It belongs to the thread once the loop has left it. */
struct request {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	int root;
	int flags;
	int fd;
	bool is_answered;
	bool is_left;
	bool has_rights;
	struct rights rights;
	char text[];
};

static bool gave_up;

static int open_as(const struct request *request, unsigned long long resolve)
{
	return rights_open(request->has_rights ? &request->rights : NULL, request->text, request->flags, resolve,
			   request->root);
}

static void request_free(struct request *request)
{
	if (request->root >= 0)
		close(request->root);
	pthread_cond_destroy(&request->answered);
	pthread_mutex_destroy(&request->lock);
	free(request);
}

static void *answer(void *argument)
{
	struct request *request = argument;
	int fd = open_as(request, 0);
	bool is_left;

	pthread_mutex_lock(&request->lock);
	request->fd = fd;
	request->is_answered = true;
	is_left = request->is_left;
	pthread_cond_signal(&request->answered);
	pthread_mutex_unlock(&request->lock);
	if (is_left) {
		if (fd >= 0)
			close(fd);
		request_free(request);
	}
	return NULL;
}

static bool start(struct request *request)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all;
	sigset_t before;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	started = pthread_create(&thread, &attributes, answer, request) == 0;
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

/* The answer of a thread, or -1 after PATIENCE_S. */
static int wait_for(struct request *request)
{
	struct timespec until;
	bool is_answered;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&request->lock);
	while (!request->is_answered &&
	       pthread_cond_timedwait(&request->answered, &request->lock, &until) != ETIMEDOUT)
		;
	is_answered = request->is_answered;
	fd = request->fd;
	request->is_left = !is_answered;
	pthread_mutex_unlock(&request->lock);
	if (!is_answered) {
		gave_up = true;
		return -1;
	}
	request_free(request);
	return fd < 0 ? -1 : fd;
}

static struct request *request_new(const struct rights *rights, const char *text, int flags, int root)
{
	struct request *request = calloc(1, sizeof(*request) + strlen(text) + 1);
	pthread_condattr_t attributes;

	if (request == NULL)
		return NULL;
	strcpy(request->text, text);
	request->flags = flags;
	request->root = root < 0 ? -1 : fcntl(root, F_DUPFD_CLOEXEC, 0);
	request->fd = -1;
	request->has_rights = rights;
	if (rights)
		request->rights = *rights;
	pthread_mutex_init(&request->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&request->answered, &attributes);
	pthread_condattr_destroy(&attributes);
	return request;
}

int open_in_time(const struct rights *rights, const char *text, int flags, int root)
{
	struct request *request = request_new(rights, text, flags, root);
	int fd = -1;

	if (request == NULL)
		return -1;
	if (root < 0 || request->root >= 0)
		fd = open_as(request, RESOLVE_CACHED);
	/* EAGAIN: it is not cached; the others: the kernel does not know the flag */
	if ((fd == -EAGAIN || fd == -EINVAL || fd == -ENOSYS || fd == -EPERM) && !gave_up && start(request))
		return wait_for(request);
	request_free(request);
	return fd < 0 ? -1 : fd;
}
