/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is to be read for a traced task. */
#ifndef ETRACE_PTRACE_REQUEST_H
#define ETRACE_PTRACE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "etrace_format.h"

struct request {
	struct request *next;
	s64 upid;
	pid_t tid;
	unsigned int uid; /* with whose rights it is read, when root traces */
	unsigned int gid;
	int depth;
	bool is_elsewhere; /* the task has another root directory or mount namespace */
	const char *path;
	char cwd[]; /* what nested names are relative to; the path lies behind it */
};

/* As whom to read, when root does: the task's user, groups aside. False when that is not known. */
bool request_find_user(struct request *request);

/* Read at most `max` bytes into a buffer of one more; -1 when the file is larger or cannot be read. */
ssize_t request_read(const struct request *request, char *buffer, size_t max);

#endif /* ETRACE_PTRACE_REQUEST_H */
