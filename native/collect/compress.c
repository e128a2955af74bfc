// SPDX-License-Identifier: Apache-2.0
/*
 * Zstandard: each buffer becomes a frame of its own with a checksum. A file that ends behind any
 * frame is whole (RFC 8878: frames follow each other), so a full disk or a killed collector costs
 * the last frame only.
 */
#include "compress.h"

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
