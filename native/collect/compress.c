// SPDX-License-Identifier: Apache-2.0
/*
 * Zstandard: each buffer becomes a frame of its own with a checksum. A file that ends after any
 * frame is whole (RFC 8878: frames follow each other), so a full disk or a killed collector costs
 * the last frame only.
 */
#include "compress.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect.h"

#ifdef ETRACE_WITH_ZSTD
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define LEVEL 1 /* of a trace it leaves a tenth; higher levels cost a multiple for little */

static struct {
	ZSTD_CCtx *context;
	char *frame;
	size_t size;
} zstd;

void compress_init(void)
{
	zstd.context = ZSTD_createCCtx();
	if (!zstd.context)
		die("out of memory for --zstd");
	ZSTD_CCtx_setParameter(zstd.context, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(zstd.context, ZSTD_c_checksumFlag, 1);
}

const char *compress(const char *text, size_t *len)
{
	size_t bound = ZSTD_compressBound(*len);

	if (bound > zstd.size) {
		zstd.frame = must_realloc(zstd.frame, bound);
		zstd.size = bound;
	}
	*len = ZSTD_compress2(zstd.context, zstd.frame, zstd.size, text, *len);
	if (ZSTD_isError(*len))
		die("zstd: %s", ZSTD_getErrorName(*len));
	return zstd.frame;
}

size_t compress_whole(const char *frames, size_t size, bool *broken)
{
	size_t end = 0, len;

	*broken = false;
	while (end < size) {
		len = ZSTD_findFrameCompressedSize(frames + end, size - end);
		if (ZSTD_isError(len)) {
			*broken = ZSTD_getErrorCode(len) != ZSTD_error_srcSize_wrong;
			break;
		}
		end += len;
	}
	return end;
}
#else
void compress_init(void)
{
	die("this etrace_cat was built without zstd: install libzstd-dev and build it again, or "
	    "leave out --zstd and compress the file afterwards");
}

const char *compress(const char *text, size_t *len)
{
	(void)len;
	return text;
}

size_t compress_whole(const char *frames, size_t size, bool *broken)
{
	(void)frames;
	*broken = false;
	return size;
}
#endif

/* ---- --continue ---- */

/*
 * --continue. A collector that was killed in a write() may leave an incomplete line, and so an
 * incomplete event, or an incomplete frame.
 */

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
		die("--continue: %s is not a zstd file at byte %zu", name, end);
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
