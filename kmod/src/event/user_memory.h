/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Strings and structures in the task's memory. A probe reads what is present, because it cannot
 * wait for a page. A page can be away although the call has just read it: reclaim and khugepaged
 * take pages at any time. Then -EFAULT, and task_work reads again before the task runs on.
 */
#ifndef ETRACE_USER_MEMORY_H
#define ETRACE_USER_MEMORY_H

#include <linux/types.h>

/* Copy a string of less than PATH_MAX bytes with its null byte; its length or -errno. Atomic. */
long etrace_user_string(char *to, u64 address);
/* Copy bytes; 0 or -EFAULT. Atomic. */
int etrace_user_bytes(void *to, u64 address, size_t n);

/*
 * The same in task_work: pages that are away are brought back, unless a program may serve them
 * (userfaultfd, FUSE, network file systems, drivers), for it may be the very task. Sleeps.
 */
long etrace_user_string_later(char *to, u64 address);
int etrace_user_bytes_later(void *to, u64 address, size_t n);

#endif /* ETRACE_USER_MEMORY_H */
