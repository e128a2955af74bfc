/* SPDX-License-Identifier: Apache-2.0 */
/* Zstandard, where etrace_cat was built with it. */
#ifndef ETRACE_COLLECT_COMPRESS_H
#define ETRACE_COLLECT_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef ETRACE_WITH_ZSTD
#define COMPRESS_AVAILABLE 1
#else
#define COMPRESS_AVAILABLE 0
#endif

/* Ends the program with a reason when it was built without. */
void compress_init(void);

/* Bytes of the frames that are whole; `*broken` when behind them no part of one follows. */
size_t compress_whole(const char *frames, size_t size, bool *broken);

/* `*len` bytes as one frame, valid until the next call; its size comes back in `*len`. */
const char *compress(const char *text, size_t *len);

#endif /* ETRACE_COLLECT_COMPRESS_H */
