// SPDX-License-Identifier: Apache-2.0
/*
 * The plain cat: text lines from a file, a pipe or the trace_pipe of an instance (where the kernel
 * makes the text), whole lines at a time.
 */
#include "collect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "writer.h"

#define CHUNK_BYTES (64u << 10)
#define LINE_BYTES_MAX (64u << 10) /* longer ones, which no event makes, go out in parts */

struct input {
	int fd;
	char *buf;
	size_t len; /* of a line whose end has not come */
	size_t size;
};

static int open_input(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

	if (fd < 0 && errno == EBUSY)
		die("another program reads '%s' already: end it first", path);
	if (fd < 0)
		die("cannot open '%s': %s%s", path, strerror(errno),
		    errno == EACCES ? " (sudo etrace_cat)" : "");
	return fd;
}

/* Lines go out, the rest of the last one moves to the front. */
static void put_lines(struct input *input)
{
	char *at = input->buf, *end = input->buf + input->len, *newline;

	while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
		writer_put_copy(at, (size_t)(newline + 1 - at), 1);
		at = newline + 1;
	}
	input->len = (size_t)(end - at);
	memmove(input->buf, at, input->len);
	if (input->len >= LINE_BYTES_MAX) {
		writer_put_copy(input->buf, input->len, 0);
		input->len = 0;
	}
}

static ssize_t read_some(struct input *input)
{
	ssize_t n;

	if (input->size - input->len < CHUNK_BYTES) {
		input->size += CHUNK_BYTES;
		input->buf = must_realloc(input->buf, input->size);
	}
	do
		n = read(input->fd, input->buf + input->len, CHUNK_BYTES);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		input->len += (size_t)n;
	return n;
}

static void wait_for_input(int fd)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };

	stop_wait(&readable, 1, WAIT_FOREVER, false);
}

/*
 * Bytes that were written before the request to end and are read after it, at most; then nothing
 * more is there. A trace_pipe says itself when it is empty, as long as nobody goes on tracing.
 */
static u64 backlog(int fd)
{
	struct statfs fs;
	int pipe_bytes = fcntl(fd, F_GETPIPE_SZ);

	if (pipe_bytes > 0)
		return (u64)pipe_bytes;
	return fstatfs(fd, &fs) == 0 && fs.f_type == TRACEFS_MAGIC ? UINT64_MAX : 0;
}

/* Read to the end, or to where it ended at the stop request. False: an error. */
static bool copy(struct input *input)
{
	u64 left = backlog(input->fd);

	if (fcntl(input->fd, F_GETPIPE_SZ) > 0)
		wait_for_input(input->fd); /* before its first writer a FIFO reads as ended */
	for (;;) {
		bool stopping = stop_requested;
		ssize_t n;

		counters.interrupted = stopping && !left;
		if (counters.interrupted || writer_error() == EPIPE)
			return true;
		n = read_some(input);
		if (n == 0 || (n < 0 && errno == EAGAIN && stopping))
			return true;
		if (n < 0 && errno != EAGAIN)
			return false;
		put_lines(input);
		report_progress(false);
		if (n < 0) {
			writer_flush(true);
			wait_for_input(input->fd);
		} else if (stopping && left <= (u64)n) {
			return true;
		} else if (stopping) {
			left -= (u64)n;
		}
	}
}

void copy_run(const char *path)
{
	struct input input = { .fd = open_input(path) };

	if (!copy(&input)) {
		int error = errno;

		writer_flush(true);
		die("cannot read '%s': %s", path, strerror(error));
	}
	if (input.len && !counters.interrupted)
		writer_put_copy(input.buf, input.len, 1);
	free(input.buf);
	close(input.fd);
}
