// SPDX-License-Identifier: Apache-2.0
/*
 * Response files: what `@FILE` on the command line of a compiler, linker or archiver held while it
 * ran. Build tools remove such files at once.
 *
 * The loop queues names; a thread reads the files, because any of them may be on a file system that
 * a traced process serves. The loop holds the command until they are read, for at most PATIENCE_NS,
 * so that nobody removes them first on a loaded machine. The thread reads regular files only, with
 * the rights and from the root directory that the task had when the program began, so that root does
 * not read files for a user who cannot; none for a set-uid program, whose arguments its caller chose.
 * Files that are gone, too large or unread at the end are only
 * counted: gcc's stages show most of their content.
 *
 * Only arguments of tools (naming_next) count, not `npm install @x/y` and `curl -d @secret`.
 */
#include "capture/response.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "capture/named.h"
#include "capture/options.h"
#include "capture/trace.h"

#define QUEUE_BYTES (16 << 20)
#define PATIENCE_NS 200000000u /* for the files of a command that is about to run */
#define LAST_WAIT_NS 1000000000u /* at the end, for files that are still being read */
#define STACK_BYTES (256 << 10)

/* The files to read for a traced task. */
struct request {
	struct request *next;
	s64 upid;
	struct rights rights; /* of the task, when its program began */
	int root; /* its root directory, or -1: that of this process */
	size_t size;	   /* of all this */
	struct naming naming; /* of nested names */
	size_t n_names;
	const char *names; /* one after the other, each with its end; after `cwd` */
	char cwd[];	   /* their base directory */
};

/* ---- reading with the rights of a task ---- */

/* A file of /proc describes the process that opens it, or another one. */
static bool is_of_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC;
}

/* The name alone is opened first: opening a device may do something. */
static int open_regular(const struct request *request, const char *path, size_t max)
{
	int fd = rights_open(&request->rights, path, 0, 0, request->root);
	struct stat st;
	int readable = -1;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= (off_t)max && !is_of_proc(fd))
		readable = rights_reopen(&request->rights, fd, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	close(fd);
	return readable;
}

/*
 * Read at most `max` bytes of a file into a buffer of one more; -1 when it is larger or cannot be
 * read.
 */
static ssize_t read_for_task(const struct request *request, const char *path, char *to, size_t max)
{
	size_t len = 0;
	ssize_t n = -1;
	int fd = open_regular(request, path, max);

	if (fd < 0)
		return -1;
	while (len <= max && (n = read(fd, to + len, max + 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	return n < 0 || len > max ? -1 : (ssize_t)len;
}

/* ---- the queue ---- */

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

/* ---- the thread ---- */

static void read_file(const struct request *request, const char *path)
{
	ssize_t len = read_for_task(request, path, buffer, RESPONSE_FILE_BYTES);
	size_t before = named.n;
	size_t n_missed =
		len < 0 ? 0 : named_add_nested(&named, &request->naming, request->cwd, buffer,
						(size_t)len);
	bool is_saved;

	pthread_mutex_lock(&lock);
	if (!is_over) {
		is_saved = len >= 0 && saved_add(request->upid, path, strlen(path), buffer,
						 (size_t)len);
		counters.response_files += is_saved;
		counters.missed_response_files += n_missed + !is_saved;
		n_waiting += named.n - before;
		n_waiting--;
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

static void request_free(struct request *request)
{
	if (request->root >= 0)
		close(request->root);
	free(request);
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

	for (;;) {
		pthread_mutex_lock(&lock);
		request = next_request();
		pthread_mutex_unlock(&lock);
		serve_request(request);
		request_free(request);
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

/* With the lock: wait until all files are read, for a limited time. */
static void wait_for_thread(u64 patience_ns)
{
	struct timespec end = monotonic_after(patience_ns);

	while (n_waiting && pthread_cond_timedwait(&idle, &lock, &end) != ETIMEDOUT)
		;
}

/* A thread that was too slow may wait for the loop: until it is done, no command waits again. */
static void hold(void)
{
	static bool is_slow;

	pthread_mutex_lock(&lock);
	if (!is_slow || !n_waiting)
		wait_for_thread(PATIENCE_NS);
	is_slow = n_waiting != 0;
	pthread_mutex_unlock(&lock);
}

static void ask(struct request *request)
{
	size_t n = request->n_names;

	if (!thread_state)
		thread_state = start_thread();
	if (thread_state > 0 && put_in_queue(request)) {
		hold();
		return;
	}
	miss(n);
	request_free(request);
}

static struct etrace_text next_name(struct naming *naming, const struct etrace_text *argument)
{
	size_t len = argument->len;
	const char *name = naming_next(naming, argument->text, &len);

	return (struct etrace_text){ name, name ? len : 0 };
}

/* The accepted names of a command: their number, total bytes, and bytes left. */
static size_t count_names(struct naming *naming, const struct etrace_text *arguments, size_t n,
			  size_t *size, size_t *n_missed)
{
	struct etrace_text name;
	size_t taken = 0;
	size_t i;

	*size = *n_missed = 0;
	for (i = 0; i < n && naming->state != NAMING_NONE; i++) {
		name = next_name(naming, &arguments[i]);
		if (!name.len)
			continue;
		if (taken == MAX_NAMES || name.len >= PATH_MAX) {
			++*n_missed;
			continue;
		}
		*size += name.len + 1;
		taken++;
	}
	return taken;
}

static void put_names(char *to, const struct etrace_text *arguments, size_t n_names)
{
	struct naming naming = { 0 };
	struct etrace_text name;

	for (; n_names; arguments++) {
		name = next_name(&naming, arguments);
		if (!name.len || name.len >= PATH_MAX)
			continue;
		memcpy(to, name.text, name.len);
		to += name.len + 1;
		to[-1] = '\0';
		n_names--;
	}
}

bool response_is_wanted(const struct etrace_text *arguments, size_t n)
{
	struct naming naming = { 0 };
	size_t i;

	if (!options.responses_path)
		return false;
	for (i = 0; i < n && naming.state != NAMING_NONE; i++)
		if (next_name(&naming, &arguments[i]).len)
			return true;
	return false;
}

void response_add(s64 upid, const struct etrace_text *arguments, size_t n, const char *cwd,
		  const struct rights *rights, int root)
{
	size_t start = strlen(cwd) + 1;
	struct naming naming = { 0 };
	struct request *request;
	size_t n_missed;
	size_t n_taken;
	size_t size;

	n_taken = count_names(&naming, arguments, n, &size, &n_missed);
	if (!rights || rights->is_raised) {
		n_missed += n_taken;
		n_taken = 0;
	}
	if (n_missed)
		miss(n_missed);
	if (!n_taken)
		return;
	size += sizeof(*request) + start;
	request = must_alloc(size);
	memset(request, 0, sizeof(*request));
	request->upid = upid;
	request->naming = naming;
	request->rights = *rights;
	request->root = root < 0 ? -1 : fcntl(root, F_DUPFD_CLOEXEC, 0);
	request->size = size;
	request->n_names = n_taken;
	request->names = request->cwd + start;
	memcpy(request->cwd, cwd, start);
	put_names(request->cwd + start, arguments, n_taken);
	if (root >= 0 && request->root < 0) {
		miss(n_taken);
		free(request);
		return;
	}
	ask(request);
}

/* ---- the end ---- */

/* With the lock. */
static void stop_reading(void)
{
	wait_for_thread(LAST_WAIT_NS);
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
