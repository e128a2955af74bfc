/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With whose rights names are looked up and files are opened. A tracer that is root does both for tasks of
 * others: with their rights at the time of the event, or their owner would learn what only root may know.
 */
#ifndef ETRACE_CAPTURE_RIGHTS_H
#define ETRACE_CAPTURE_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RIGHTS_MOST_GROUPS 256

struct rights {
	unsigned int uid;
	unsigned int gid;
	uint64_t capabilities; /* effective in the user namespace of this process; of root only */
	bool is_raised; /* the program's file raised them (set-uid, set-gid): those of its caller count */
	size_t n_groups;
	unsigned int groups[RIGHTS_MOST_GROUPS];
};

/*
 * Those of a task that is stopped. False: unknown, or too many groups. A tracer that is not root has no
 * others to take, so this asks nothing.
 */
bool rights_of_task(pid_t tid, struct rights *rights);

/* Those of this process: for what does not go into a trace. */
const struct rights *rights_own(void);

/*
 * A descriptor of what a name leads to for a task, opened for the name alone (O_PATH), or -errno.
 * `rights`: NULL if they are unknown; root opens nothing then. `root`: its root directory, which no name
 * leads out of, or -1: that of this process. `resolve`: as of openat2().
 * Links of /proc that lead to what a process has are not followed.
 */
int rights_open(const struct rights *rights, const char *path, int flags, uint64_t resolve, int root);

/* A descriptor to read a file that rights_open() has found. */
int rights_reopen(const struct rights *rights, int fd, int flags);

#endif /* ETRACE_CAPTURE_RIGHTS_H */
