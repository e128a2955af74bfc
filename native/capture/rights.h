/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With whose rights names are looked up and files are read. A tracer that is root does both for tasks of
 * others: with their rights at the time of the event, or their owner would learn what only root may know.
 */
#ifndef ETRACE_CAPTURE_RIGHTS_H
#define ETRACE_CAPTURE_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RIGHTS_MOST_GROUPS 256

/* What the kernel asks a file for: fsuid, fsgid, the other groups, and CAP_DAC_READ_SEARCH or _OVERRIDE. */
struct rights {
	unsigned int uid;
	unsigned int gid;
	bool reads_all;
	bool is_raised; /* by its program's file, set-uid or set-gid: who started it chose its arguments */
	size_t n_groups;
	unsigned int groups[RIGHTS_MOST_GROUPS];
};

/*
 * Those of a task that is stopped. False: unknown, or too many
 * groups. A tracer that is not root has no others to take, so this asks nothing.
 */
bool rights_of_task(pid_t tid, struct rights *rights);

/* From the numbers of the file system and the real ones. */
void rights_set(struct rights *rights, unsigned int uid, unsigned int gid, unsigned int real_uid,
		unsigned int real_gid, bool reads_all);

/*
 * Look up names with these rights, in this thread only, until rights_return(). False: that cannot be done,
 * and nothing may be looked up. NULL: unknown rights, so false for root.
 */
bool rights_take(const struct rights *rights);

void rights_return(void);

#endif /* ETRACE_CAPTURE_RIGHTS_H */
