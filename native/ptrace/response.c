// SPDX-License-Identifier: Apache-2.0
/*
 * `@FILE` on the command lines of compilers, linkers and archivers -> what FILE held.
 *
 * The loop only queues names; a thread reads the files (request.c), for any of them may lie in a
 * file system that a traced process serves. Regular files only, and as the user who runs the
 * program: root must not read for somebody what they could not read. What is gone by then, is too
 * large or stays unread at the end is counted, no more: gcc's stages tell most of it.
 *
 * Only of tools (tool.c): `npm install @x/y` and `curl -d @secret` are none.
 */
#include "response.h"

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

#include "output.h"
#include "request.h"
#include "tool.h"
#include "tracer.h"

#define FILE_BYTES (1 << 20)
#define TOTAL_BYTES (64 << 20) /* of different contents */
#define MAX_QUEUED 65536
#define MAX_FILES 65536
#define MAX_DEPTH 8
#define LAST_WAIT_NS 1000000000u /* at the end, for what is still being read */
#define N_BUCKETS 1024
#define STACK_BYTES (256 << 10)

struct content {
	struct content *next; /* in its bucket */
	u64 hash;
	long number; /* of the record that holds it, -1 before it is written */
	size_t len;
	char text[];
};

struct file {
	struct file *next;
	struct content *content;
	s64 upid;
	size_t len;
	char path[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER;
static pthread_cond_t idle;
static struct request *first_request;
static struct request **last_request = &first_request;
static size_t n_queued;
static bool is_reading;
static bool is_over; /* nobody wants another answer */
static int thread_state; /* 0: not started, 1: runs, -1: cannot be started */

static struct content *buckets[N_BUCKETS];
static struct file *first_file;
static struct file **last_file = &first_file;
static size_t n_files;
static size_t n_bytes;
static char *buffer; /* only the thread uses it */

/* ---- reading: the thread ---- */

/* FNV-1a */
static u64 hash_of(const char *text, size_t len)
{
	u64 hash = 0xcbf29ce484222325;

	while (len--)
		hash = (hash ^ (unsigned char)*text++) * 0x100000001b3;
	return hash;
}

/* What follows runs with the lock. */

static struct content *find_content(const char *text, size_t len)
{
	u64 hash = hash_of(text, len);
	struct content **bucket = &buckets[hash % N_BUCKETS];
	struct content *content;

	for (content = *bucket; content; content = content->next)
		if (content->hash == hash && content->len == len &&
		    !memcmp(content->text, text, len))
			return content;
	if (n_bytes + len > TOTAL_BYTES)
		return NULL;
	content = must_alloc(sizeof(*content) + len);
	content->hash = hash;
	content->number = -1;
	content->len = len;
	memcpy(content->text, text, len);
	content->next = *bucket;
	*bucket = content;
	n_bytes += len;
	return content;
}

static bool keep(const struct request *request, size_t len)
{
	struct content *content = n_files < MAX_FILES ? find_content(buffer, len) : NULL;
	size_t path_len = strlen(request->path);
	struct file *file;

	if (!content)
		return false;
	file = must_alloc(sizeof(*file) + path_len + 1);
	file->next = NULL;
	file->content = content;
	file->upid = request->upid;
	file->len = path_len;
	memcpy(file->path, request->path, path_len + 1);
	*last_file = file;
	last_file = &file->next;
	n_files++;
	return true;
}

/* Ask for the file that `name` is, seen from the directory of `from`. */
static void put_in_queue(const struct request *from, const char *name, size_t len)
{
	size_t cwd = strlen(from->cwd);
	size_t start = name[0] == '/' ? 0 : cwd;
	struct request *request;
	char *path;

	if (n_queued == MAX_QUEUED || from->depth > MAX_DEPTH || len > PATH_MAX) {
		counters.missed_response_files++;
		return;
	}
	request = must_alloc(sizeof(*request) + cwd + 1 + start + 1 + len + 1);
	*request = *from;
	request->next = NULL;
	memcpy(request->cwd, from->cwd, cwd + 1);
	path = request->cwd + cwd + 1;
	request->path = path;
	memcpy(path, from->cwd, start);
	if (start && path[start - 1] != '/')
		path[start++] = '/';
	memcpy(path + start, name, len);
	path[start + len] = '\0';
	*last_request = request;
	last_request = &request->next;
	n_queued++;
	pthread_cond_signal(&queued);
}

/* The words of a response file, as libiberty's buildargv() splits them, that name others. */
static void ask_nested(const struct request *from, const char *text, size_t len)
{
	char *word = must_alloc(len + 1);
	size_t n = 0;
	char quote = '\0';
	bool is_word = false;
	size_t i;

	for (i = 0; i <= len; i++) {
		bool is_blank = i == len || memchr(" \t\n\r\f\v", text[i], 6);

		if (is_blank && (!quote || i == len)) {
			if (is_word && n > 1 && word[0] == '@')
				put_in_queue(from, word + 1, n - 1);
			n = 0;
			is_word = false;
			continue;
		}
		is_word = true;
		if (text[i] == '\\' && i + 1 < len)
			word[n++] = text[++i];
		else if (quote && text[i] == quote)
			quote = '\0';
		else if (!quote && (text[i] == '\'' || text[i] == '"'))
			quote = text[i];
		else
			word[n++] = text[i];
	}
	free(word);
}

static void take(const struct request *request, ssize_t len)
{
	size_t size = sizeof(*request) + strlen(request->cwd) + 1;
	struct request *from;

	if (is_over)
		return;
	if (len < 0 || !keep(request, (size_t)len)) {
		counters.missed_response_files++;
		return;
	}
	counters.response_files++;
	from = must_alloc(size);
	memcpy(from, request, size);
	from->depth++;
	ask_nested(from, buffer, (size_t)len);
	free(from);
}

static void serve_next(void)
{
	struct request *request = first_request;
	ssize_t len;

	first_request = request->next;
	if (!first_request)
		last_request = &first_request;
	n_queued--;
	is_reading = true;
	pthread_mutex_unlock(&lock);
	len = request_read(request, buffer, FILE_BYTES);
	pthread_mutex_lock(&lock);
	is_reading = false;
	take(request, len);
	free(request);
}

static void *serve(void *nothing)
{
	if (geteuid() == 0)
		syscall(SYS_setgroups, 0, NULL); /* of this thread alone */
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!first_request) {
			pthread_cond_signal(&idle);
			pthread_cond_wait(&queued, &lock);
		}
		serve_next();
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

	buffer = must_alloc(FILE_BYTES + 1);
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

static void ask(const struct request *from, const struct etrace_text *arguments, size_t n)
{
	size_t i;

	if (!thread_state)
		thread_state = start_thread();
	pthread_mutex_lock(&lock);
	for (i = 1; i < n; i++) {
		if (names_file(&arguments[i]) && thread_state > 0)
			put_in_queue(from, arguments[i].text + 1, arguments[i].len - 1);
		else if (names_file(&arguments[i]))
			counters.missed_response_files++;
	}
	pthread_mutex_unlock(&lock);
}

/* The thread counts too. */
static void miss(void)
{
	pthread_mutex_lock(&lock);
	counters.missed_response_files++;
	pthread_mutex_unlock(&lock);
}

void response_add(const struct task *task, const struct etrace_text *arguments, size_t n,
		  const char *cwd, bool is_elsewhere)
{
	size_t len = strlen(cwd);
	struct request *from;
	size_t i;

	for (i = 1; i < n && !names_file(&arguments[i]); i++)
		;
	if (!options.responses_path || i >= n || !tool_is_named(&arguments[0]))
		return;
	from = must_alloc(sizeof(*from) + len + 1);
	memset(from, 0, sizeof(*from));
	from->upid = task->upid;
	from->tid = task->tid;
	from->is_elsewhere = is_elsewhere;
	memcpy(from->cwd, cwd, len + 1);
	if (!request_find_user(from))
		miss();
	else
		ask(from, arguments, n);
	free(from);
}

/* ---- the end ---- */

static struct timespec after(u64 ns)
{
	u64 then = monotonic_ns() + ns;

	return (struct timespec){ .tv_sec = (time_t)(then / 1000000000u),
				  .tv_nsec = (long)(then % 1000000000u) };
}

/* With the lock: wait for what is being read, not for ever. */
static void stop_reading(void)
{
	struct timespec end = after(LAST_WAIT_NS);

	while ((first_request || is_reading) &&
	       pthread_cond_timedwait(&idle, &lock, &end) != ETIMEDOUT)
		;
	is_over = true;
	counters.missed_response_files += n_queued + is_reading;
}

static void put_files(FILE *out)
{
	struct file *file;
	long n = 0;

	fputs("etrace response files 1\n", out);
	for (file = first_file; file; file = file->next) {
		struct content *content = file->content;
		bool is_new = content->number < 0;

		if (is_new)
			content->number = n++;
		fprintf(out, "%s %lld %zu %lld\n", is_new ? "file" : "same", (long long)file->upid,
			file->len, is_new ? (long long)content->len : (long long)content->number);
		fwrite(file->path, 1, file->len, out);
		putc('\n', out);
		if (is_new) {
			fwrite(content->text, 1, content->len, out);
			putc('\n', out);
		}
	}
}

static bool write_to(int fd)
{
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	bool failed;

	if (!out)
		return false;
	put_files(out);
	failed = ferror(out);
	return fclose(out) == 0 && !failed;
}

/* The file appears whole or not at all. */
static void write_file(void)
{
	char *temporary;

	if (asprintf(&temporary, "%s.%d.tmp", options.responses_path, getpid()) < 0)
		die("out of memory");
	if (!write_to(output_create(temporary)) ||
	    output_rename(temporary, options.responses_path) < 0) {
		say("cannot write the response files '%s': %s", options.responses_path,
		    strerror(errno));
		output_remove(temporary);
	}
	free(temporary);
}

void response_put(void)
{
	if (thread_state <= 0)
		return;
	pthread_mutex_lock(&lock);
	stop_reading();
	if (first_file && output_is_published())
		write_file();
	pthread_mutex_unlock(&lock);
}
