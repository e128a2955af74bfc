/* SPDX-License-Identifier: Apache-2.0 */
/* Per-CPU buffers -> held records. */
#ifndef ETRACE_COLLECT_READER_H
#define ETRACE_COLLECT_READER_H

#include "etrace_format.h"

/* Open every buffer; ends the program with a reason. */
void reader_open(void);

/*
 * Read all that was written before `*now_ns` into merge.c, or less when it takes too much memory:
 * `*now_ns` becomes the time up to which all was read. Returns the largest share of its buffer that
 * a CPU had, in percent.
 */
unsigned int reader_round(u64 *now_ns);

/* The round left something in a buffer that was written before it: another one must follow. */
bool reader_has_more(void);

/* Of a saved instance: the next stretch of time; false at the end. `*now_ns` as above. */
bool reader_replay(u64 *now_ns);

/* Sleep until a buffer is quite full, the interval has passed or a signal has come. */
void reader_wait(u64 interval_ns);

/* Count and report the kernel's losses since the last call. */
void reader_check_losses(void);

#endif /* ETRACE_COLLECT_READER_H */
