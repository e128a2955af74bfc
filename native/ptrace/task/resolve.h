/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolving names in the file system view of a traced task. All paths are inside its root. After
 * any of these a handler that finds lookup_is_pending() must end: it runs again.
 */
#ifndef ETRACE_PTRACE_RESOLVE_H
#define ETRACE_PTRACE_RESOLVE_H

#include <sys/stat.h>

#include "task/path.h"

/*
 * Resolve the directories of `path` and keep its last component as it is. Where a directory cannot
 * be opened `path` stays as it was and the result is false.
 */
bool resolve_directories(struct task *task, struct path *path);

/* Resolve all symbolic links. False when there is no such file. */
bool resolve_whole(struct task *task, struct path *path);

/* Identity, type and links of a file; AT_SYMLINK_NOFOLLOW is the only flag. False: there is none. */
bool stat_in_task(struct task *task, const struct path *path, int flags, struct stat *st);

/* Whether names mean something else for the task than for the tracer. */
bool is_elsewhere(struct task *task);

#endif /* ETRACE_PTRACE_RESOLVE_H */
