/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of Windows -> event lines (docs/format.md), by the formatter that all backends share. */
#ifndef WINDOWS_LINES_H
#define WINDOWS_LINES_H

#include <stdint.h>

#include "buffer.h"

/* upid: sequence << 22 | low bits of the process id, so it never repeats. */
int64_t lines_upid(uint64_t sequence, unsigned long pid);

struct lines_exec {
	struct text image; /* the file that runs */
	struct text asked; /* as the caller gave it */
	struct text directory;
	const struct words *arguments;
};

void lines_begin(struct buffer *out, struct text directory);
void lines_fork(struct buffer *out, int64_t parent, uint64_t time_ns, int64_t child);
void lines_exec(struct buffer *out, int64_t upid, uint64_t time_ns, const struct lines_exec *exec);
void lines_exit(struct buffer *out, int64_t upid, uint64_t time_ns, uint32_t code);
/* One variable of the environment of `n` processes. */
void lines_variable(struct buffer *out, const int64_t *upids, size_t n, uint64_t time_ns,
		    struct text variable);

/* A 32-bit exit code as the eight bits of the format; what does not fit never becomes 0. */
uint32_t lines_status(uint32_t code);

#endif /* WINDOWS_LINES_H */
