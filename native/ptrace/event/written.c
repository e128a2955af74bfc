// SPDX-License-Identifier: Apache-2.0
/*
 * What processes write to standard error and output, for the Written lines.
 *
 * The filter stops writes to descriptor 2 (and 1 with --stdout) and no others. The bytes are read
 * when the call has returned: only then is it known how many were taken, and the program has not
 * touched them meanwhile. The first and the last half of ETRACE_KEPT_OUTPUT_BYTES stay until the
 * execution ends; its leader has those of all threads.
 *
 * A shell that runs `echo text >&2` makes descriptor 1 a copy of 2 and writes to that. The filter
 * cannot know, so all calls of such a task stop as long as the copy is there (task_sees_writes()).
 */
#include "event/event.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/options.h"
#include "task/memory.h"

#define HALF (ETRACE_KEPT_OUTPUT_BYTES / 2)
#define BRIEF_HALF (ETRACE_BRIEF_OUTPUT_BYTES / 2)
#define PIECE_BYTES (ETRACE_PART_BYTES - 1) /* on one line, without a number */
_Static_assert(HALF <= MEMORY_LOOK_MAX, "read at once");

#define VECTORS_MAX 1024 /* IOV_MAX */

/* One descriptor's. What follows the first half goes round in `last`. */
struct stream {
	char *first;
	size_t n_first;
	size_t size; /* of `first` */
	char *last; /* HALF bytes, once needed */
	u64 n_later; /* bytes after the first half */
};

struct written {
	struct stream streams[2]; /* standard output, standard error */
};

static u64 n_printed; /* bytes of all executions */

/*
 * At most MEMORY_LOOK_MAX bytes. The call has just read them, so they are there unless another thread
 * has taken them away; who brings them back may be a process that waits for this tracer.
 */
static bool read_memory(const struct task *task, u64 address, char *into, size_t n)
{
	if (memory_is_there(task, address, n) && memory_read(task, address, into, n) == (ssize_t)n)
		return true;
	counters.unread_strings++;
	memset(into, '?', n);
	return false;
}

/* As much as the first half has room for; returns how much that is. */
static size_t add_first(struct stream *stream, const struct task *task, u64 address, size_t n)
{
	size_t room = HALF - stream->n_first;

	if (n > room)
		n = room;
	if (stream->n_first + n > stream->size) {
		stream->size = stream->n_first + n > HALF / 8 ? HALF : HALF / 8;
		stream->first = must_realloc(stream->first, stream->size);
	}
	if (n)
		read_memory(task, address, stream->first + stream->n_first, n);
	stream->n_first += n;
	return n;
}

static void add_later(struct stream *stream, const struct task *task, u64 address, size_t n)
{
	if (!stream->last)
		stream->last = must_alloc(HALF);
	if (n > HALF) {
		stream->n_later += n - HALF;
		address += n - HALF;
		n = HALF;
	}
	while (n) {
		size_t at = stream->n_later % HALF;
		size_t part = n < HALF - at ? n : HALF - at;

		read_memory(task, address, stream->last + at, part);
		stream->n_later += part;
		address += part;
		n -= part;
	}
}

static void add(struct stream *stream, const struct task *task, u64 address, size_t n)
{
	size_t done = add_first(stream, task, address, n);

	if (done < n)
		add_later(stream, task, address + done, n - done);
}

/* Where a write of this task belongs, NULL when it is not to be kept. */
static struct stream *stream_of(const struct task *task)
{
	struct task *leader = task_find(task->tgid);
	int fd = (int)task->args[0];
	bool is_error = fd == STDERR_FILENO || fd_table_leads_to_error(task->fds, fd);

	if (!leader || !(is_error ? options.keeps_stderr : options.keeps_stdout))
		return NULL;
	if (!leader->written) {
		leader->written = must_alloc(sizeof(*leader->written));
		memset(leader->written, 0, sizeof(*leader->written));
	}
	return &leader->written->streams[is_error];
}

static void exit_write(struct task *task, s64 result)
{
	struct stream *stream = result > 0 ? stream_of(task) : NULL;

	if (stream)
		add(stream, task, task->args[1], (size_t)result);
}

/* Address and length of a vector, of two words. */
struct vector {
	u64 address;
	u64 len;
};

static struct vector vector_at(const struct task *task, const char *vectors, size_t i)
{
	struct vector found;
	u32 narrow[2];

	if (task->is_narrow) {
		memcpy(narrow, vectors + i * sizeof(narrow), sizeof(narrow));
		return (struct vector){ narrow[0], narrow[1] };
	}
	memcpy(&found, vectors + i * sizeof(found), sizeof(found));
	return found;
}

static void exit_writev(struct task *task, s64 result)
{
	static char vectors[VECTORS_MAX * sizeof(struct vector)]; /* 16 KiB */
	size_t n = task->args[2] < VECTORS_MAX ? task->args[2] : VECTORS_MAX;
	size_t bytes = n * (task->is_narrow ? 2 * sizeof(u32) : sizeof(struct vector));
	struct stream *stream = result > 0 ? stream_of(task) : NULL;
	u64 left = result > 0 ? (u64)result : 0;
	size_t i;

	if (!stream)
		return;
	if (!read_memory(task, task->args[1], vectors, bytes))
		return;
	for (i = 0; i < n && left; i++) {
		struct vector vector = vector_at(task, vectors, i);
		u64 len = vector.len < left ? vector.len : left;

		add(stream, task, vector.address, len);
		left -= len;
	}
}

const struct syscall_handler write_handler = { .exit = exit_write };
const struct syscall_handler writev_handler = { .exit = exit_writev };

/* ---- the lines ---- */

/* Text being printed: `cut` bytes are left out before what comes next. */
struct printing {
	struct task *task;
	u64 time_ns;
	int fd;
	u64 cut;
};

static void put_text(struct printing *printing, const char *text, size_t n)
{
	n_printed += n;
	while (n) {
		struct etrace_text piece = { text, n < PIECE_BYTES ? n : PIECE_BYTES };
		s64 values[] = { printing->fd, (s64)printing->cut };

		event_put_at(printing->task, printing->time_ns, ETRACE_EV_WRITTEN, values, &piece);
		printing->cut = 0;
		text += piece.len;
		n -= piece.len;
	}
}

/* The bytes [begin, end) of what followed the first half; `last` has the end of it. */
static void put_later(struct printing *printing, const struct stream *stream, u64 begin)
{
	while (begin < stream->n_later) {
		size_t at = begin % HALF;
		u64 left = stream->n_later - begin;
		size_t n = left < HALF - at ? (size_t)left : HALF - at;

		put_text(printing, stream->last + at, n);
		begin += n;
	}
}

/* What all of it is with at most `half` bytes of its begin and as many of its end. */
static void put_stream(struct printing *printing, const struct stream *stream, size_t half)
{
	u64 total = stream->n_first + stream->n_later;
	size_t first = total > 2 * half ? half : stream->n_first;
	u64 rest = total > 2 * half ? total - half : first; /* where the end begins */

	put_text(printing, stream->first, first);
	printing->cut = rest - first;
	if (rest < stream->n_first) {
		put_text(printing, stream->first + rest, stream->n_first - rest);
		rest = stream->n_first;
	}
	put_later(printing, stream, rest - stream->n_first);
}

void written_put(struct task *task, u64 time_ns, bool has_failed)
{
	bool is_brief = !has_failed && n_printed >= ETRACE_FULL_OUTPUT_BYTES;
	struct written *written = task->written;
	int i;

	if (!written)
		return;
	for (i = 0; i < 2; i++) {
		struct printing printing = { task, time_ns, i ? STDERR_FILENO : STDOUT_FILENO, 0 };

		put_stream(&printing, &written->streams[i], is_brief ? BRIEF_HALF : HALF);
		free(written->streams[i].first);
		free(written->streams[i].last);
	}
	free(written);
	task->written = NULL;
}
