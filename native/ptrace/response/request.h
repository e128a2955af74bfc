/* SPDX-License-Identifier: Apache-2.0 */
/* The files that are to be read for a traced task. */
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
	unsigned int uid; /* with whose rights they are read, when root traces */
	unsigned int gid;
	bool is_elsewhere; /* the task has another root directory or mount namespace */
	size_t size;	   /* of all this */
	size_t n_names;
	const char *names; /* one behind the other, each with its end; they lie behind `cwd` */
	char cwd[];	   /* their base directory */
};

/* As whom to read, when root does: the task's user, groups aside. False when that is not known. */
bool request_find_user(struct request *request);

/* Once in the thread that reads: it has no groups from here on. */
void request_drop_groups(void);

/*
 * Read at most `max` bytes of a file into a buffer of one more; -1 when it is larger or cannot be
 * read.
 */
ssize_t request_read(const struct request *request, const char *path, char *buffer, size_t max);

#endif /* ETRACE_PTRACE_REQUEST_H */
