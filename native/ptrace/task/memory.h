/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and registers of a stopped task. */
#ifndef ETRACE_PTRACE_MEMORY_H
#define ETRACE_PTRACE_MEMORY_H

#include <limits.h>

#include "task/task.h"

/* Bytes read, fewer than `size` where readable memory ends, or -errno when there are none. */
ssize_t memory_read(const struct task *task, u64 address, void *buf, size_t size);
ssize_t memory_write(const struct task *task, u64 address, const void *buf, size_t size);

/*
 * Read a path with its null byte into `buf`, and note in the same call which CPU the task is on.
 * Returns its length, or -errno (-ENAMETOOLONG when no null byte comes within PATH_MAX bytes).
 */
ssize_t memory_read_path(struct task *task, u64 address, char buf[PATH_MAX]);

#define MEMORY_CHUNK 256 /* of a string; most paths are shorter */
#define MEMORY_LOOK_MAX 32768

/* Whether at most MEMORY_LOOK_MAX bytes can be read without a page fault. */
bool memory_is_there(const struct task *task, u64 address, size_t size);

/* As memory_read_path(), but only where no page need be brought in: -EAGAIN otherwise. */
ssize_t memory_read_string_again(const struct task *task, u64 address, char buf[PATH_MAX]);

/* Have a string's pages brought in; for threads that may wait. */
void memory_bring_in(pid_t tid, u64 address);

/* Note which CPU the task is on where that has not been read together with a path. */
void memory_note_cpu(struct task *task);

/* A program was loaded: whatever was known of the task's memory is void. */
void memory_begin_program(struct task *task);

/* ---- registers ---- */

/* The result of the call that the task has made or is about to return from. */
long registers_result(const struct task *task);

/* Whether the call that a task is in is fork or vfork rather than clone. */
bool registers_of_fork(const struct task *task);

/* Change the first argument of the call that is about to be made. */
void registers_set_argument(const struct task *task, u64 value);

/* Put it back when the call has been made, where the program would see that it was changed. */
void registers_restore_argument(const struct task *task, u64 value);

#endif /* ETRACE_PTRACE_MEMORY_H */
