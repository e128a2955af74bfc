/* SPDX-License-Identifier: GPL-2.0-only */
/* Resolves a path of the task with the kernel's memory only; waits for no file system. */
#ifndef ETRACE_WALK_H
#define ETRACE_WALK_H

#include "etrace_format.h"

struct path;

/*
 * Resolve `name` (absolute, or relative to the working directory) with the kernel's memory; a
 * symlink at its end is followed or not. The caller calls path_put(). -EAGAIN, counted: some part
 * is not in memory. Uses `buf` of ETRACE_PATH_BYTES, which may not hold `name`. Waits for no file
 * system. Process context of the task.
 */
int etrace_walk(const char *name, bool follow, char *buf, struct path *path);
/* The same as text, in the same `buf`; absent when it leads to nothing that is known. */
struct etrace_text etrace_walk_text(const char *name, bool follow, char *buf);

#endif /* ETRACE_WALK_H */
