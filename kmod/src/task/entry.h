/* SPDX-License-Identifier: GPL-2.0-only */
/* One traced task, and what its probes keep between two moments of one system call. */
#ifndef ETRACE_ENTRY_H
#define ETRACE_ENTRY_H

#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "record/emit.h"

struct etrace_scratch;

/* Strings of a call that a security hook of the kernel saw. */
struct etrace_names {
	u8 kind; /* of the call */
	struct etrace_text text[3]; /* in `bytes`; source or target string, destination, type */
	char bytes[];
};

/* What is known of an execution before its task may sleep. */
struct etrace_exec {
	struct file *file; /* the program that was loaded; NULL until it was */
	struct file *dir; /* execveat: the directory or file that its descriptor was, or NULL */
	char *filename; /* as asked for, after its null byte `interp`; NULL without memory */
	u32 filename_len;
	u32 interp_len; /* of a script's interpreter; 0: not a script */
};

/*
 * Which descriptors a call is about to close, noted before it does: one bit for each that the table
 * has room for, however many they are.
 */
struct etrace_descriptors {
	u32 first; /* descriptor of bit 0 */
	u32 n_bits;
	u32 n; /* bits set */
	unsigned long bits[];
};

/*
 * What an execution has opened to read, by the hash of both paths; of two in one place the later
 * one stays.
 */
#define ETRACE_N_OPENS 128
struct etrace_opens {
	u64 hashes[ETRACE_N_OPENS]; /* 0: none */
};

/* A system call of a traced task that has returned. */
struct etrace_call {
	u64 args[6];
	s64 result;
	u64 time_ns; /* set when work is deferred: the time of the event */
	u8 kind; /* enum etrace_call_kind */
};

struct etrace_task;

/* What is done about a kind of call. */
struct etrace_handler {
	/* The call has returned. Atomic. */
	void (*exit)(struct etrace_task *entry, const struct etrace_call *call);
	/* A second look, where it may sleep; `space` is its own. */
	void (*work)(struct etrace_task *entry, const struct etrace_call *call,
		     struct etrace_scratch *space);
};

/*
 * One traced task. Found under rcu_read_lock(); changed only by the task itself, except `refs` and
 * what set.c guards. The set holds one reference until the task's own sched_process_exit or the
 * session's end, pending task_work holds another.
 */
struct etrace_task {
	struct hlist_node node;
	struct task_struct *task; /* key; no reference held */
	struct etrace_origin origin; /* of its events */
	struct etrace_names *names;
	struct etrace_exec exec;
	struct etrace_descriptors *closing; /* by the execution or close_range at hand */
	/* where most of these are: of a table that never grew */
	unsigned long few_closing[sizeof(struct etrace_descriptors) / sizeof(long) + 1];
	struct etrace_opens *opens; /* ETRACE_OPTION_OPEN_ONCE */
	union {
		struct callback_head work; /* never pending twice: it runs before the next call */
		struct rcu_head rcu; /* when the last reference is gone, so that of `work` too */
	};
	const struct etrace_handler *handler; /* whose work is pending; NULL: nobody's */
	struct etrace_call deferred; /* what that is about */
	u64 reported_user; /* by the last Usage, in ns */
	u64 reported_system;
	u64 max_rss; /* in bytes, when it is about to end; 0: not known */
	bool foreign_root; /* counted */
	bool hooked; /* a security hook has seen the call at hand, which a filter may make up */
	bool root; /* a thread of the root process */
	bool borrows_memory; /* vfork(): until it executes, its memory is the parent's */
	refcount_t refs;
};

/* A new one with one reference; NULL without memory. Atomic. */
struct etrace_task *etrace_task_new(struct task_struct *task, const struct etrace_origin *origin);
void etrace_task_get(struct etrace_task *entry);
void etrace_task_put(struct etrace_task *entry); /* the last one frees its data */

/* Free the kept data. Any context. */
void etrace_names_free(struct etrace_task *entry);
void etrace_exec_free(struct etrace_task *entry);
void etrace_descriptors_free(struct etrace_task *entry);
void etrace_opens_free(struct etrace_task *entry);

#endif /* ETRACE_ENTRY_H */
