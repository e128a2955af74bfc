/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of a traced task as the task itself sees them: below its own root directory. */
#ifndef ETRACE_PTRACE_PATH_H
#define ETRACE_PTRACE_PATH_H

#include <limits.h>
#include <sys/stat.h>

#include "task/task.h"

/* Room for a directory and a string after it, each at most PATH_MAX with its null byte. */
#define JOINED_MAX (2 * PATH_MAX)

struct path {
	size_t len;
	char text[JOINED_MAX];
};

/* Every cached root and working directory is stale: something was renamed or mounted. */
void path_invalidate_all(void);

/* Those of one task are stale. */
void path_invalidate(struct fs_state *fs);

/* Root as the tracer sees it, without a slash at the end: "" for the tracer's own. */
const char *path_root(struct task *task);

/* Working directory inside that root; "" when its path is too long to be read. */
const char *path_cwd(struct task *task);

/* What /proc/TID/`link` points to, inside the task's root. False when it cannot be read. */
bool path_of_link(struct task *task, const char *link, struct path *path);

/* Path of an open descriptor. */
bool path_of_fd(struct task *task, int fd, struct path *path);

/* Path, as the task sees it, of a descriptor that the tracer itself has opened. */
bool path_of_own_fd(struct task *task, int fd, struct path *path);

void path_set(struct path *path, const char *text, size_t len);

/* Put a slash and `text` after a path, unless it is empty. False when there is no room. */
bool path_extend(struct path *path, const char *text, size_t len);

/* `text` made absolute by putting the directory of `dirfd` and a slash before it. */
bool path_join(struct task *task, int dirfd, const char *text, size_t len, struct path *path);

static inline struct etrace_text path_text(const struct path *path)
{
	return (struct etrace_text){ path->text, path->len };
}

/*
 * ---- names in the file system view of a traced task ----
 *
 * All paths are inside its root. After any of these a handler that finds lookup_is_pending() must
 * end: it runs again.
 */

/*
 * Resolve the directories of `path` and keep its last component. Where a directory cannot be
 * opened, `path` is unchanged and the result is false.
 */
bool resolve_directories(struct task *task, struct path *path);

/* Resolve all symbolic links. False when there is no such file. */
bool resolve_whole(struct task *task, struct path *path);

/* Identity, type and links of a file; AT_SYMLINK_NOFOLLOW is the only flag. False: there is none. */
bool stat_in_task(struct task *task, const struct path *path, int flags, struct stat *st);

/* Whether names mean something else for the task than for the tracer. */
bool is_elsewhere(struct task *task);

#endif /* ETRACE_PTRACE_PATH_H */
