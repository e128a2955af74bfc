// SPDX-License-Identifier: Apache-2.0
/*
 * Writer of the trace. Events gather in one buffer and go to the file whole, so that the file ends
 * at the end of an event whenever the tracer dies. The first write error (a full disk) ends the
 * writing, not the build: from there on events are counted as lost.
 */
#include "capture/trace.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "capture/options.h"
#include "capture/output.h"
#include "capture/rlimits.h"

#define INITIAL_BYTES (1 << 20)
#define FLUSH_BYTES (256 << 10) /* a write of this size costs little next to what gathers it */
#define EAGER_BYTES (8 << 10) /* and of this one little next to its reader */

static struct {
	int fd;
	int error;
	const char *path;
	struct etrace_out out;
	size_t event_start; /* of the event being put: the text before it is whole */
	u64 n_buffered; /* whole events in the buffer */
	size_t *ends; /* of each of them */
	size_t n_ends_max;
} file = { .fd = -1 };

void trace_open(const char *path)
{
	file.fd = output_begin(path);
	if (file.fd < 0)
		die("cannot write the trace '%s': %s%s", path, strerror(errno),
		    errno == ELOOP ? " (as root a symbolic link is not followed: name its target)"
				   : "");
	if (flock(file.fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		die("cannot write the trace '%s': another capture is writing it", path);
	if (ftruncate(file.fd, 0) < 0 && errno != EINVAL) /* EINVAL: a pipe, /dev/full */
		die("cannot write the trace '%s': %s", path, strerror(errno));
	file.path = path;
	etrace_out_init(&file.out, must_alloc(INITIAL_BYTES), INITIAL_BYTES);
}

static void fail(int error)
{
	file.error = error;
	say("cannot write the trace '%s': %s%s; the build continues, but its events are lost from here on",
	    file.path, strerror(error), limits_blame(error));
}

static size_t write_all(const char *text, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(file.fd, text + done, len - done);

		if (n < 0 && errno != EINTR)
			break;
		if (n > 0)
			done += (size_t)n;
	}
	return done;
}

static u64 lines_in(const char *text, size_t len)
{
	const char *end = text + len;
	u64 n = 0;

	for (; (text = memchr(text, '\n', (size_t)(end - text))); text++)
		n++;
	return n;
}

/* Of `done` bytes that were written keep the whole events; a file can be cut, a pipe cannot. */
static void keep_whole_events(size_t done)
{
	u64 n_kept = 0;
	size_t kept = 0;

	while (n_kept < file.n_buffered && file.ends[n_kept] <= done)
		kept = file.ends[n_kept++];
	counters.bytes += kept;
	if (ftruncate(file.fd, (off_t)counters.bytes) < 0)
		counters.bytes += done - kept;
	counters.events -= file.n_buffered - n_kept;
	counters.lost += file.n_buffered - n_kept;
	counters.lines -= lines_in(file.out.buf + kept, file.out.len - kept);
}

/* Only between events: the buffer holds whole events. */
void trace_flush(void)
{
	size_t done;

	if (file.fd < 0 || file.error)
		return;
	done = write_all(file.out.buf, file.out.len);
	if (done < file.out.len) {
		fail(errno);
		keep_whole_events(done);
	} else {
		counters.bytes += done;
	}
	file.n_buffered = 0;
	file.out.len = 0;
}

static void grow(size_t needed)
{
	size_t size = file.out.size;

	while (size < needed)
		size *= 2;
	if (size > file.out.size) {
		file.out.buf = must_realloc(file.out.buf, size);
		file.out.size = size;
	}
}

bool trace_is_open(void)
{
	return file.fd >= 0;
}

int trace_error(void)
{
	return file.error;
}

void trace_begin(void)
{
	file.event_start = file.out.len;
}

struct etrace_out *trace_piece(void)
{
	return &file.out;
}

static void note_end(void)
{
	if (file.n_buffered == file.n_ends_max) {
		file.n_ends_max = file.n_ends_max ? file.n_ends_max * 2 : 1024;
		file.ends = must_realloc(file.ends, file.n_ends_max * sizeof(*file.ends));
	}
	file.ends[file.n_buffered++] = file.out.len;
}

bool trace_end(void)
{
	if (file.error || file.fd < 0) {
		counters.lost += file.fd >= 0;
		file.out.len = file.event_start;
		return true;
	}
	if (file.out.len > file.out.size) {
		size_t needed = file.out.len - file.event_start;

		file.out.len = file.event_start;
		trace_flush();
		grow(needed);
		return false;
	}
	counters.events++;
	note_end();
	counters.lines += lines_in(file.out.buf + file.event_start,
				   file.out.len - file.event_start);
	if (file.out.len >= (options.eager ? EAGER_BYTES : FLUSH_BYTES))
		trace_flush();
	return true;
}

void trace_put(const struct etrace_prefix *prefix, enum etrace_event event, const s64 *values,
	       const struct etrace_text *data)
{
	do {
		trace_begin();
		etrace_put_event(&file.out, prefix, event, values, data);
	} while (!trace_end());
}

void trace_put_execution(const struct etrace_prefix *prefix, const struct etrace_text *data,
			 const struct etrace_text *arguments, size_t n)
{
	s64 argsize = 0;
	u32 i;

	for (i = 0; i < n; i++)
		argsize += (s64)arguments[i].len + 1;
	do {
		struct etrace_out *out = trace_piece();

		trace_begin();
		etrace_put_event(out, prefix, ETRACE_EV_NEW_PROC, &argsize, data);
		for (i = 0; i < n; i++)
			etrace_put_item(out, prefix, ETRACE_DATA_A, i, arguments[i].text,
					arguments[i].len);
		etrace_put_end_of_args(out, prefix);
	} while (!trace_end());
	counters.executions++;
}

static void append(const char *text, size_t len)
{
	memcpy(file.out.buf + file.out.len, text, len);
	file.out.len += len;
}

/* A newline would end the line: it is written as \012, as the kernel does in /proc/mounts. */
void trace_put_first_line(void)
{
	char cwd[PATH_MAX];
	const char *at;

	if (!getcwd(cwd, sizeof(cwd)))
		die("cannot find the working directory: %s", strerror(errno));
	append(ETRACE_FIRST_LINE, strlen(ETRACE_FIRST_LINE));
	for (at = cwd; *at; at++)
		append(*at == '\n' ? "\\012" : at, *at == '\n' ? 4 : 1);
	append("\n", 1);
	counters.lines++;
	trace_flush();
}

void trace_close(void)
{
	if (file.fd < 0)
		return;
	trace_flush();
	if (close(file.fd) < 0 && !file.error)
		fail(errno);
	file.fd = -1;
}
