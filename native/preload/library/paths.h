/* SPDX-License-Identifier: Apache-2.0 */
/* Names as the kernel resolves them; each function makes a few system calls and no other effect. */
#ifndef ETRACE_PRELOAD_PATHS_H
#define ETRACE_PRELOAD_PATHS_H

#include "system.h"

struct path {
	size_t n;
	char text[PATH_MAX + 1];
};

/* The name in /proc of a descriptor of this process. */
#define LINK_PREFIX "/proc/self/fd/"
#define LINK_MAX_BYTES (sizeof(LINK_PREFIX) + 12)
void path_link_of_fd(char name[LINK_MAX_BYTES], int fd);

/* Each is empty when it cannot be known. */
void path_of_cwd(struct path *path);
void path_of_fd(struct path *path, int fd);
void path_of_program(struct path *path);

/* Take the kernel's mark of a deleted file off the end, unless a file has that name. */
void path_strip_deleted(struct path *path);

/* Where `name` leads; `flags` of an openat() beside O_PATH. */
bool path_resolve(struct path *path, int dirfd, const char *name, int flags);

/* Like `name` with its directories resolved and its last component unresolved. */
bool path_resolve_directories(struct path *path, int dirfd, const char *name);

#endif /* ETRACE_PRELOAD_PATHS_H */
