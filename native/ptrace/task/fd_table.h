/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_FD_TABLE_H
#define ETRACE_PTRACE_FD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Which descriptors of a task are known to be open: made by a traced call, or listed. */
struct fd_table {
	unsigned int refs; /* tasks that share it (CLONE_FILES) */
	bool was_shared; /* two tasks may have changed it at once: some of it may be closed */
	bool is_doubtful; /* it may change without a stop (io_uring) */
	unsigned int n_words;
	uint64_t *known;
};

struct fd_table *fd_table_create(void);
struct fd_table *fd_table_copy(const struct fd_table *from);
struct fd_table *fd_table_share(struct fd_table *table);
void fd_table_drop(struct fd_table *table);

void fd_table_add(struct fd_table *table, int fd);
void fd_table_remove(struct fd_table *table, int fd);
bool fd_table_has(const struct fd_table *table, int fd);

/* Lowest known descriptor that is at least `from`, or -1. */
int fd_table_next(const struct fd_table *table, int from);

#endif /* ETRACE_PTRACE_FD_TABLE_H */
