// SPDX-License-Identifier: Apache-2.0
/*
 * `@FILE` on the command lines of compilers, linkers and archivers -> the content of FILE.
 *
 * The loop only queues names; a thread reads the files (request.c), because any of them may be on a
 * file system that a traced process serves. It reads regular files only, with the rights of the
 * program's user, so that root does not read files for a user who cannot. Files that are gone, too
 * large or unread at the end are only counted: gcc's stages show most of their content.
 *
 * Only arguments of tools (tool.c) count, not `npm install @x/y` and `curl -d @secret`.
 */
#include "response/response.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "named.h"
#include "response/request.h"
#include "response/saved.h"
#include "tool.h"
#include "tracer.h"

#define QUEUE_BYTES (16 << 20)
#define LAST_WAIT_NS 1000000000u /* at the end, for files that are still being read */
#define STACK_BYTES (256 << 10)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER;
static pthread_cond_t idle;
static struct request *first_request;
static struct request **last_request = &first_request;
static size_t queue_bytes;
static size_t n_waiting; /* names that are neither read nor counted as missed */
static bool is_over;	 /* nobody wants another answer */
static int thread_state; /* 0: not started, 1: runs, -1: cannot be started */

/* Only the thread uses these; it works on them without the lock, which the loop waits for. */
static char *buffer;
static struct named named; /* that the command names */

/* ---- reading: the thread ---- */

static void read_file(const struct request *request, const char *path)
{
	ssize_t len = request_read(request, path, buffer, RESPONSE_FILE_BYTES);
	struct saved *file =
		len < 0 ? NULL : saved_make(request->upid, path, strlen(path), buffer, (size_t)len);
	size_t before = named.n;
	size_t n_missed = file ? named_add_nested(&named, request->cwd, buffer, (size_t)len) : 1;

	pthread_mutex_lock(&lock);
	if (!is_over) {
		counters.missed_response_files += n_missed;
		n_waiting += named.n - before;
		n_waiting--;
		if (file) {
			saved_keep(file);
			counters.response_files++;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void add_names(const struct request *request)
{
	const char *name = request->names;
	size_t n_missed = 0;
	size_t i;

	for (i = 0; i < request->n_names; i++, name += strlen(name) + 1)
		n_missed += named_add(&named, request->cwd, name, strlen(name));
	pthread_mutex_lock(&lock);
	if (!is_over) {
		counters.missed_response_files += n_missed;
		n_waiting -= request->n_names - named.n;
	}
	pthread_mutex_unlock(&lock);
}

/* Names in a file come after those of the command. */
static void serve_request(const struct request *request)
{
	size_t i;

	add_names(request);
	for (i = 0; i < named.n; i++)
		read_file(request, named.paths[i]);
	named_clear(&named);
}

/* With the lock. */
static struct request *next_request(void)
{
	struct request *request;

	while (!first_request) {
		pthread_cond_signal(&idle);
		pthread_cond_wait(&queued, &lock);
	}
	request = first_request;
	first_request = request->next;
	if (!first_request)
		last_request = &first_request;
	queue_bytes -= request->size;
	return request;
}

static void *serve(void *nothing)
{
	struct request *request;

	request_drop_groups();
	for (;;) {
		pthread_mutex_lock(&lock);
		request = next_request();
		pthread_mutex_unlock(&lock);
		serve_request(request);
		free(request);
	}
	return nothing;
}

/* ---- the loop ---- */

/* All signals of the tracer are for the loop. */
static int start_thread(void)
{
	pthread_condattr_t monotonic;
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t old;
	sigset_t all;
	int error;

	buffer = must_alloc(RESPONSE_FILE_BYTES + 1);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&idle, &monotonic);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attributes, serve, NULL);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error ? -1 : 1;
}

static bool names_file(const struct etrace_text *argument)
{
	return argument->len > 1 && argument->text[0] == '@';
}

/* The thread counts too. */
static void miss(size_t n)
{
	pthread_mutex_lock(&lock);
	counters.missed_response_files += n;
	pthread_mutex_unlock(&lock);
}

static bool put_in_queue(struct request *request)
{
	bool fits;

	pthread_mutex_lock(&lock);
	fits = request->size <= QUEUE_BYTES - queue_bytes;
	if (fits) {
		*last_request = request;
		last_request = &request->next;
		queue_bytes += request->size;
		n_waiting += request->n_names;
		pthread_cond_signal(&queued);
	}
	pthread_mutex_unlock(&lock);
	return fits;
}

static void ask(struct request *request)
{
	size_t n = request->n_names;

	if (!thread_state)
		thread_state = start_thread();
	if (thread_state > 0 && request_find_user(request) && put_in_queue(request))
		return;
	miss(n);
	free(request);
}

/* The accepted names of a command: their number, total bytes, and bytes left. */
static size_t count_names(const struct etrace_text *arguments, size_t n, size_t *size,
			  size_t *n_missed)
{
	size_t taken = 0;
	size_t i;

	*size = *n_missed = 0;
	for (i = 1; i < n; i++) {
		if (!names_file(&arguments[i]))
			continue;
		if (taken == MAX_NAMES || arguments[i].len > PATH_MAX) {
			++*n_missed;
			continue;
		}
		*size += arguments[i].len;
		taken++;
	}
	return taken;
}

static void put_names(char *to, const struct etrace_text *arguments, size_t n_names)
{
	for (arguments++; n_names; arguments++) {
		if (!names_file(arguments) || arguments->len > PATH_MAX)
			continue;
		memcpy(to, arguments->text + 1, arguments->len - 1);
		to += arguments->len;
		to[-1] = '\0';
		n_names--;
	}
}

void response_add(const struct task *task, const struct etrace_text *arguments, size_t n,
		  const char *cwd, bool is_elsewhere)
{
	size_t start = strlen(cwd) + 1;
	struct request *request;
	size_t n_missed;
	size_t n_taken;
	size_t size;

	if (!options.responses_path || !n || !tool_is_named(arguments[0].text, arguments[0].len))
		return;
	n_taken = count_names(arguments, n, &size, &n_missed);
	if (n_missed)
		miss(n_missed);
	if (!n_taken)
		return;
	size += sizeof(*request) + start;
	request = must_alloc(size);
	memset(request, 0, sizeof(*request));
	request->upid = task->upid;
	request->tid = task->tid;
	request->is_elsewhere = is_elsewhere;
	request->size = size;
	request->n_names = n_taken;
	request->names = request->cwd + start;
	memcpy(request->cwd, cwd, start);
	put_names(request->cwd + start, arguments, n_taken);
	ask(request);
}

/* ---- the end ---- */

static struct timespec after(u64 ns)
{
	u64 then = monotonic_ns() + ns;

	return (struct timespec){ .tv_sec = (time_t)(then / 1000000000u),
				  .tv_nsec = (long)(then % 1000000000u) };
}

/* With the lock: wait for the file that is being read, for a limited time. */
static void stop_reading(void)
{
	struct timespec end = after(LAST_WAIT_NS);

	while (n_waiting && pthread_cond_timedwait(&idle, &lock, &end) != ETIMEDOUT)
		;
	is_over = true;
	counters.missed_response_files += n_waiting;
}

void response_put(void)
{
	if (thread_state <= 0)
		return;
	pthread_mutex_lock(&lock);
	stop_reading();
	saved_put();
	pthread_mutex_unlock(&lock);
}
