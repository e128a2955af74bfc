/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups of names for the traced tasks, none of which the tracer waits for.
 *
 * A name can lead into a file system that a traced process serves (FUSE). While the tracer waits
 * for such a file system, the process is in a stop that only the tracer can end. So a name that
 * the kernel cannot resolve from its cache is given to a thread, and so is a string in memory that
 * has to be brought in (of a program on such a file system, or by userfaultfd). The handler of the stop returns
 * without an effect, the task stays stopped, and the same handler runs again when the answer is
 * there.
 */
#ifndef ETRACE_PTRACE_LOOKUP_H
#define ETRACE_PTRACE_LOOKUP_H

#include <stdbool.h>
#include <sys/stat.h>

#include "task/task.h"

/*
 * A descriptor of a file that nobody opened (O_PATH), or -errno; with `in_root` below the task's
 * own root directory. -EINPROGRESS: the handler must end without an effect and will run again.
 */
int lookup_open(struct task *task, const char *path, int flags, bool in_root);

/* Whether a string of the task can be read without waiting; if not the handler runs again. */
bool lookup_string(struct task *task, u64 address);

/* Open a name of the tracer itself, within a fraction of a second or not at all. */
int lookup_soon(const char *path, int flags);

/* What is known of an open file, or of the one that a link of /proc leads to, without asking its
 * file system. */
bool lookup_stat_fd(int fd, struct stat *st);
bool lookup_stat_link(const char *link, struct stat *st);

/* Whether the handler of the task's stop has to run again. */
bool lookup_is_pending(const struct task *task);

/* The stop has been handled, or the task is gone. */
void lookup_forget(struct task *task);

/* A task whose answer has come, or NULL. */
struct task *lookup_next_answered(void);

#endif /* ETRACE_PTRACE_LOOKUP_H */
