/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_CAPTURE_FD_TABLE_H
#define ETRACE_CAPTURE_FD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Bits of 64 descriptors. */
struct fd_word {
	uint64_t known;
	uint64_t errors; /* those that lead where 2 does or did */
	uint64_t old_errors; /* those of them that a program found when it began */
};

/* Which descriptors of a task are known to be open: made by a traced call, or listed. */
struct fd_table {
	unsigned int refs; /* tasks that share it (CLONE_FILES) */
	bool was_shared; /* two tasks may have changed it at once: some of it may be closed */
	bool is_doubtful; /* it may change without a stop (io_uring) */
	unsigned int n_words;
	struct fd_word *words;
};

struct fd_table *fd_table_create(void);
struct fd_table *fd_table_copy(const struct fd_table *from);
struct fd_table *fd_table_share(struct fd_table *table);
void fd_table_drop(struct fd_table *table);

void fd_table_add(struct fd_table *table, int fd);
/* A copy of another descriptor. */
void fd_table_add_copy(struct fd_table *table, int from, int to);
void fd_table_remove(struct fd_table *table, int fd);
bool fd_table_has(const struct fd_table *table, int fd);

/* Whether it leads where descriptor 2 does or did, by copies of the program or of the shell that started it. */
bool fd_table_leads_to_error(const struct fd_table *table, int fd);

/* A program begins: what it starts in turn is not known to have the copies that it found. */
void fd_table_note_exec(struct fd_table *table);

/* Lowest known descriptor that is at least `from`, or -1. */
int fd_table_next(const struct fd_table *table, int from);

/* Lowest descriptor that is at least `from` and not known to be open. */
int fd_table_lowest_free(const struct fd_table *table, int from);

#endif /* ETRACE_CAPTURE_FD_TABLE_H */
