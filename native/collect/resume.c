// SPDX-License-Identifier: Apache-2.0
/*
 * --continue. A collector that was killed in a write() may leave an incomplete line, and so an
 * incomplete event, or an incomplete frame.
 */
#include "resume.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect.h"
#include "compress.h"

static const char zstd_magic[4] = "\x28\xb5\x2f\xfd";

/* Of the line that ends before `end`, or would. */
static size_t line_start(const char *text, size_t end)
{
	const char *newline = memrchr(text, '\n', end);

	return newline ? (size_t)(newline + 1 - text) : 0;
}

/* With its end; 0 when that is not there. */
static size_t prefix_bytes(const char *line, size_t len)
{
	const char *end = memchr(line, '!', len);

	return end ? (size_t)(end + 1 - line) : 0;
}

/*
 * A half line may be of the event before it, whose lines have the same prefix: they go with it. When
 * it ends within its prefix, the event before goes if it may be that one.
 */
static size_t whole_events(const char *text, size_t size)
{
	size_t end = line_start(text, size), half = size - end, start, len;
	const char *prefix = text + end;

	if (!end || !half)
		return end;
	len = prefix_bytes(prefix, half);
	if (!len) {
		start = line_start(text, end - 1);
		if (end - start < half || memcmp(text + start, prefix, half))
			return end;
		prefix = text + start;
		len = prefix_bytes(prefix, end - start);
	}
	while (len && end) {
		start = line_start(text, end - 1);
		if (end - start < len || memcmp(text + start, prefix, len))
			break;
		end = start;
	}
	return end;
}

static size_t whole(const char *data, size_t size, const char *name)
{
	bool broken;
	size_t end;

	if (!options.zstd && size >= sizeof(zstd_magic) &&
	    !memcmp(data, zstd_magic, sizeof(zstd_magic)))
		die("--continue: %s is compressed: give --zstd as well", name);
	if (!options.zstd)
		return whole_events(data, size);
	end = compress_whole(data, size, &broken);
	if (broken)
		die("--continue: %s is no zstd file at byte %zu", name, end);
	return end;
}

off_t resume_cut(int fd, const char *name)
{
	struct stat st;
	size_t size, end;
	void *data;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		die("--continue: %s is not a regular file", name);
	if (!st.st_size)
		return 0;
	size = (size_t)st.st_size;
	data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		die("--continue: cannot read %s: %s", name, strerror(errno));
	end = whole(data, size, name);
	munmap(data, size);
	if (ftruncate(fd, (off_t)end) < 0)
		die("--continue: cannot cut %s: %s", name, strerror(errno));
	return (off_t)end;
}
