/* SPDX-License-Identifier: Apache-2.0 */
/* Zstandard, where etrace_cat was built with it, and the trace of a collector that died. */
#ifndef ETRACE_COLLECT_COMPRESS_H
#define ETRACE_COLLECT_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef ETRACE_WITH_ZSTD
#define COMPRESS_AVAILABLE 1
#else
#define COMPRESS_AVAILABLE 0
#endif

/* Ends the program with a reason when it was built without. */
void compress_init(void);

/* Bytes of the frames that are whole; `*broken` when no part of one follows them. */
size_t compress_whole(const char *frames, size_t size, bool *broken);

/* `*len` bytes as one frame, valid until the next call; its size comes back in `*len`. */
const char *compress(const char *text, size_t *len);

/* ---- --continue ---- */

/*
 * Cut the file after the last event, or frame with --zstd, that is known to be whole; return its
 * length. When it is not such a file, leave it unchanged and end the program.
 */
off_t resume_cut(int fd, const char *name);

#endif /* ETRACE_COLLECT_COMPRESS_H */
