// SPDX-License-Identifier: Apache-2.0
/*
 * The plain cat: text lines from a file, a pipe or the trace_pipe of an instance (where the kernel
 * makes the text), whole lines at a time.
 */
#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect.h"
#include "output.h"
#include "reader.h"
#include "report.h"

#define CHUNK_BYTES (64u << 10)

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
		output_put_line(at, (size_t)(newline + 1 - at));
		at = newline + 1;
	}
	input->len = (size_t)(end - at);
	memmove(input->buf, at, input->len);
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
	sigset_t none;

	sigemptyset(&none);
	ppoll(&readable, 1, NULL, &none);
}

void copy_run(const char *path)
{
	struct input input = { .fd = open_input(path) };
	bool stopping = false;
	ssize_t n;

	while ((n = read_some(&input)) > 0 || (n < 0 && errno == EAGAIN && !stopping)) {
		put_lines(&input);
		report_status(false);
		if (output_error() == EPIPE)
			break;
		if (n < 0) {
			output_flush(true);
			wait_for_input(input.fd);
			stopping = stop_requests;
		}
	}
	if (n < 0 && errno != EAGAIN)
		die("cannot read '%s': %s", path, strerror(errno));
	if (input.len)
		output_put_line(input.buf, input.len);
	free(input.buf);
	close(input.fd);
}
