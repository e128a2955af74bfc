/* SPDX-License-Identifier: Apache-2.0 */
/* From records of the kernel to event lines. */
#ifndef ETRACE_BPF_TRACE_H
#define ETRACE_BPF_TRACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "etrace_format.h"
#include "bpf/record.h"
#include "capture/capture.h"
#include "capture/rights.h"
#include "capture/written.h"

/* ---- tasks.c: the tasks that live ---- */

/* A root directory and mount namespace that is not that of this process; tasks share it. */
struct root {
	unsigned int refs;
	int fd;
	struct record_root known_by;
};

/* How a task sees names at an event. */
struct viewer {
	struct root *root; /* NULL: that of this process */
	const struct rights *rights; /* NULL: unknown; root looks nothing up then */
	bool is_lost; /* its root directory is not at hand: nothing is looked up */
};

/* What a task may do at its next record. */
struct task_rights {
	struct rights rights;
	struct record_root root;
};

struct traced {
	struct traced *next; /* in its bucket */
	u64 key;
	s64 upid;
	pid_t pid;
	u64 leader; /* the first thread of its process */
	u32 cpu; /* of the last record */
	bool is_root; /* the command, before its first execution */
	struct written *written; /* by the process, in its leader */
	char *closing; /* bits of descriptors that are about to be closed, from `first_closing` on */
	size_t n_closing;
	s64 first_closing;
	struct root *root; /* the last other than that of this process, or NULL */
	struct task_rights *rights; /* at the next record, or NULL */
	struct etrace_text exec_name; /* what the name of an execution starts from; absent */
	struct record_usage usage; /* of a record whose execution or exit is to come */
	bool has_usage;
	s64 reported_user; /* neither gets smaller from line to line */
	s64 reported_system;
	struct execution *execution; /* whose arguments are still to come */
};

struct traced *traced_find(u64 key);

/* A new one; an older one with this key is gone. */
struct traced *traced_add(u64 key, pid_t pid, u64 leader);

void traced_remove(struct traced *task);

void traced_for_each(void (*visit)(struct traced *task));

size_t traced_count(void);

/* Its descriptor, or -1 for that of this process. */
static inline int root_fd(const struct root *root)
{
	return root ? root->fd : -1;
}

/* Another user of a root directory, and one less. NULL: none. */
struct root *root_hold(struct root *root);
void root_release(struct root *root);

/* Hold the root directory of a task: names in it can be looked up when the task is gone. */
void traced_take_root(struct traced *task);

/* Note RECORD_RIGHTS: the groups, and the root directory. */
void traced_note_rights(struct traced *task, const struct record *record, const struct etrace_text strings[2]);

void traced_forget_rights(struct traced *task);

/* How a task saw names at a record. */
struct viewer traced_viewer(struct traced *task, const struct record *record);

/* ---- names.c ---- */

#define NAME_MAX_BYTES (2 * PATH_MAX + 2)

struct name {
	size_t len;
	char text[NAME_MAX_BYTES];
};

/* `text` below `directory`, unless it is absolute. */
void name_join(struct name *name, const struct etrace_text *directory, const struct etrace_text *text);

/* The last part of `text` in `directory`, which is its directory. */
void name_join_last(struct name *name, const struct etrace_text *directory, const struct etrace_text *text);

/* Resolve the directories and keep the last component; where these are gone, by what is known of them. */
void name_resolve_directories(struct name *name, const struct viewer *viewer);

/* The build has made a symbolic link: names below it are understood when it is gone. */
void name_note_link(const struct name *link, const struct etrace_text *target);

/* Resolve everything; false when there is no such file. */
bool name_resolve(struct name *name, const struct viewer *viewer);

/* The same, of a file that was there at a time, by CLOCK_MONOTONIC. */
bool name_resolve_older(struct name *name, const struct viewer *viewer, u64 time_ns);

/* Whether there is something with this name, not followed. */
bool name_exists(const struct name *name, const struct viewer *viewer);

static inline struct etrace_text name_text(const struct name *name)
{
	return (struct etrace_text){ name->text, name->len };
}

/* ---- events.c ---- */

/* Print the events of a record. */
void events_put(const struct record *record, const char *text, size_t n);

void events_put_at(const struct traced *task, u64 time_ns, enum etrace_event event, const s64 *values,
		   const struct etrace_text *data);

/* What the process has used, if a record has said it. */
void events_put_usage(struct traced *task, u64 time_ns);

/* Close lines of the noted descriptors. */
void events_put_closed(struct traced *task, u64 time_ns);

/* Nothing is closed after all. */
void events_forget_closing(struct traced *task);

/* What the process of this leader has written since its last execution. */
void events_put_written(struct traced *task, u64 time_ns, bool has_failed);

/* Records of a task that the kernel had no room for. */
u64 events_lost(void);

/* ---- execution.c ---- */

/* A program was loaded; its arguments follow. */
void execution_begin(struct traced *task, const struct record *record, const struct etrace_text *strings);

/* A piece of the arguments or the environment. */
void execution_add(struct traced *task, const struct record *record, const char *text, size_t n);

void execution_free(struct traced *task);

#endif /* ETRACE_BPF_TRACE_H */
