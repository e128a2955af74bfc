// SPDX-License-Identifier: Apache-2.0
/* The first and the last half of ETRACE_KEPT_OUTPUT_BYTES stay until the execution ends. */
#include "capture/written.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/program.h"

#define HALF (ETRACE_KEPT_OUTPUT_BYTES / 2)
#define BRIEF_HALF (ETRACE_BRIEF_OUTPUT_BYTES / 2)
#define PIECE_BYTES (ETRACE_PART_BYTES - 1) /* on one line, without a number */

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

static struct stream *stream_of(struct written **written, bool is_error)
{
	if (!*written) {
		*written = must_alloc(sizeof(**written));
		memset(*written, 0, sizeof(**written));
	}
	return &(*written)->streams[is_error];
}

/* As much as the first half has room for; returns how much that is. */
static size_t add_first(struct stream *stream, const struct written_source *source, u64 n)
{
	size_t room = HALF - stream->n_first;

	if (n < room)
		room = (size_t)n;
	if (stream->n_first + room > stream->size) {
		stream->size = stream->n_first + room > HALF / 8 ? HALF : HALF / 8;
		stream->first = must_realloc(stream->first, stream->size);
	}
	if (room)
		source->read(source, 0, stream->first + stream->n_first, room);
	stream->n_first += room;
	return room;
}

static void add_later(struct stream *stream, const struct written_source *source, u64 at, u64 n)
{
	if (!stream->last)
		stream->last = must_alloc(HALF);
	if (n > HALF) {
		stream->n_later += n - HALF;
		at += n - HALF;
		n = HALF;
	}
	while (n) {
		size_t place = stream->n_later % HALF;
		size_t part = n < HALF - place ? (size_t)n : HALF - place;

		source->read(source, at, stream->last + place, part);
		stream->n_later += part;
		at += part;
		n -= part;
	}
}

void written_add(struct written **written, bool is_error, const struct written_source *source, u64 n)
{
	struct stream *stream = stream_of(written, is_error);
	size_t done = add_first(stream, source, n);

	if (done < n)
		add_later(stream, source, done, n - done);
}

/* ---- the lines ---- */

/* Text being handed on: `cut` bytes are left out before what comes next. */
struct printing {
	void (*put)(void *context, const s64 *values, const struct etrace_text *text);
	void *context;
	int fd;
	u64 cut;
};

static void put_text(struct printing *printing, const char *text, size_t n)
{
	n_printed += n;
	while (n) {
		struct etrace_text piece = { text, n < PIECE_BYTES ? n : PIECE_BYTES };
		s64 values[] = { printing->fd, (s64)printing->cut };

		printing->put(printing->context, values, &piece);
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

void written_take(struct written **written, bool has_failed,
		  void (*put)(void *context, const s64 *values, const struct etrace_text *text),
		  void *context)
{
	bool is_brief = !has_failed && n_printed >= ETRACE_FULL_OUTPUT_BYTES;
	int i;

	if (!*written)
		return;
	for (i = 0; i < 2; i++) {
		struct stream *stream = &(*written)->streams[i];
		struct printing printing = { put, context, i ? STDERR_FILENO : STDOUT_FILENO, 0 };

		put_stream(&printing, stream, is_brief ? BRIEF_HALF : HALF);
		free(stream->first);
		free(stream->last);
	}
	free(*written);
	*written = NULL;
}
