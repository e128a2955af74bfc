/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the module share; hooks.h has what the probes share. control.c drives
 * session.c, which fills task_set.c (roots.c, cgroup.c) and switches hooks.c on; the probes call
 * the files of their events (open.c, exec.c, ...), which end in emit.c.
 */
#ifndef ETRACE_H
#define ETRACE_H

#include <linux/hash.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "compat.h"
#include "etrace/control.h"
#include "etrace_record.h"
#include "etrace_split.h"

/* ---- counters: per CPU, any context ---- */
struct etrace_counters {
	u64 n[ETRACE_N_COUNTERS];
};

extern struct etrace_counters __percpu *etrace_counters;

static inline void etrace_count(enum etrace_counter counter)
{
	this_cpu_inc(etrace_counters->n[counter]);
}

/* ---- the traced tasks ---- */

/* State that hooks keep between two probes of one system call; owned by names.c and exec.c. */
struct etrace_names;
struct etrace_opens;

/* What is known of an execution before its task may sleep. */
struct etrace_exec {
	struct file *file; /* the program that was loaded; NULL until it was */
	struct file *dir; /* execveat: the directory or file that its descriptor was, or NULL */
	char *filename; /* as asked for; NULL without memory */
	const char *interp; /* what a script names instead, in `filename`'s memory, or NULL */
};

/*
 * Which descriptors a call is about to close, noted before it does: one bit for each that the table
 * has room for, however many they are.
 */
struct etrace_descriptors {
	u32 first; /* that bit 0 stands for */
	u32 n_bits;
	u32 n; /* bits set */
	unsigned long bits[];
};

/* A system call of a traced task that has returned. */
struct etrace_call {
	u64 args[6];
	s64 result;
	u64 time_ns; /* set when work is deferred: the time of the event */
	u8 kind; /* enum etrace_call_kind */
};

/*
 * One traced task. Found under rcu_read_lock(); changed only by the task itself, except `refs` and
 * what task_set.c guards. The set holds one reference until the task's own sched_process_exit or
 * the session's end, pending task_work holds another.
 */
struct etrace_task {
	struct hlist_node node;
	struct task_struct *task; /* key; no reference held */
	s64 upid;
	struct etrace_names *names;
	struct etrace_exec exec;
	struct etrace_descriptors *closing; /* by the execution or close_range at hand */
	/* where most of these are: of a table that never grew */
	unsigned long few_closing[sizeof(struct etrace_descriptors) / sizeof(long) + 1];
	struct etrace_opens *opens; /* ETRACE_OPTION_OPEN_ONCE */
	struct callback_head work; /* never pending twice: it runs before the next call */
	struct etrace_call deferred; /* what `work` is about */
	bool foreign_root; /* counted */
	bool hooked; /* a security hook has seen the call at hand, which a filter may make up */
	u32 session;
	bool root; /* a thread of the root process */
	refcount_t refs;
	struct rcu_head rcu;
};

#define ETRACE_TASK_HASH_BITS 12
extern struct hlist_head etrace_task_hash[1 << ETRACE_TASK_HASH_BITS];

/*
 * False: the task is not traced. Looks at no entry and so needs no lock, not even RCU's. Opens and
 * closes of every task pay for it unless the session is isolated.
 */
static __always_inline bool etrace_task_may_be_traced(const struct task_struct *task)
{
	return READ_ONCE(etrace_task_hash[hash_ptr(task, ETRACE_TASK_HASH_BITS)].first);
}

/* Under rcu_read_lock(). NULL when the task is not traced. No lock, no memory barrier. */
static __always_inline struct etrace_task *etrace_task_find(const struct task_struct *task)
{
	struct etrace_task *entry;

	hlist_for_each_entry_rcu(entry, &etrace_task_hash[hash_ptr(task, ETRACE_TASK_HASH_BITS)],
				 node)
		if (entry->task == task)
			return entry;
	return NULL;
}

/*
 * The task is traced from now on; its entry, whether it is new or not. NULL without memory
 * (counted), for a task that is ending and for one of the kernel's own. From the fork probe when
 * the parent is traced, or when etrace_cgroup_holds(child). Atomic.
 */
struct etrace_task *etrace_task_add(struct task_struct *task);
/*
 * From the exit probe of `entry->task` itself, after its Exit: not found from now on. Atomic. The
 * caller stays under rcu_read_lock() or holds a reference while it uses `entry`.
 */
void etrace_task_remove(struct etrace_task *entry);
void etrace_task_get(struct etrace_task *entry);
void etrace_task_put(struct etrace_task *entry); /* frees names, exec with the last reference */

/* Does the session trace a cgroup that `task` is in? For the fork probe: CLONE_INTO_CGROUP. */
#ifdef CONFIG_CGROUPS
bool etrace_cgroup_holds(struct task_struct *task);
#else
static inline bool etrace_cgroup_holds(struct task_struct *task)
{
	return false;
}
#endif

/* ---- the session ---- */
extern u32 etrace_options; /* ETRACE_OPTION_* of the running session */
extern u32 etrace_session; /* its number; 0 when none runs */

/*
 * False when the session that traced this task is over. STOP waits a while for task_work, but not
 * for ever (others' work may come before it): work asks right before it emits.
 */
static inline bool etrace_task_live(const struct etrace_task *entry)
{
	return entry->session == READ_ONCE(etrace_session);
}

/* The time of an event. */
static inline u64 etrace_now(void)
{
	return ktime_get_ns(); /* CLOCK_MONOTONIC; the fast variant may step back */
}

/* ---- emission ---- */

/*
 * One event of the task, of whole strings, as one record or as many as its text needs; nothing when
 * its session is over. Preemption may be on or off; never sleeps. The strings must stay as they are
 * during the call (no user memory).
 */
void etrace_emit(const struct etrace_task *entry, u64 time_ns, enum etrace_event event,
		 const s64 *values, const struct etrace_text *data);

/*
 * An event put together piece by piece, or several lines with one time stamp that belong together
 * (Close ... Close, Comm, New_proc; RenameFrom, RenameTo). Pieces gather in `buf` and go out as
 * records. May sleep between calls if the caller may.
 */
struct etrace_stream {
	s64 upid; /* of the task; a caller may set 0 before the first event (Env) */
	u64 time_ns;
	u32 session; /* of the task: nothing is written when it is over */
	u32 n_events;
	u16 cpu; /* of the first piece: all lines of an event show one */
	u16 n_records; /* so far: the number of the next one */
	bool continues;
	bool lost;
	struct etrace_split split;
};

void etrace_stream_begin(struct etrace_stream *stream, const struct etrace_task *entry,
			 u64 time_ns);
/* The event's line and its strings, cut as needed. */
void etrace_stream_event(struct etrace_stream *stream, enum etrace_event event, const s64 *values,
			 const struct etrace_text *data);
/*
 * Bytes of item `index` of a list (A) or of a variable (Env: index counts parts, so the caller
 * passes the number of the first part). Long items may come in several calls: all but the last of a
 * multiple of ETRACE_PART_BYTES. Returns the number of parts written.
 */
u32 etrace_stream_item(struct etrace_stream *stream, enum etrace_data tag, u32 index,
		       const char *text, size_t len);
void etrace_stream_end_of_args(struct etrace_stream *stream);
/* Write out what is left. */
void etrace_stream_end(struct etrace_stream *stream);

/*
 * Per-CPU scratch: disables preemption until put. One user at a time on a CPU (task context only).
 * `path` and `other` take a path of PATH_MAX and its directory; `stream` is for streams that do
 * not sleep.
 */
#define ETRACE_PATH_BYTES (PATH_MAX + 16) /* with the kernel's " (deleted)" */
struct etrace_scratch {
	char path[ETRACE_PATH_BYTES];
	char other[2 * PATH_MAX];
	char third[ETRACE_PATH_BYTES];
	struct etrace_stream stream;
};

struct etrace_scratch *etrace_scratch_get(void);
void etrace_scratch_put(struct etrace_scratch *scratch);

/* ---- task_work ---- */

/*
 * Run `work` in `current` before it returns to user space; it may sleep there. The caller holds a
 * reference of its etrace_task for it; unloading waits until none is pending. -errno when the task
 * is past that point (exiting).
 */
struct callback_head;
int etrace_work_add(struct callback_head *work, void (*function)(struct callback_head *work));
void etrace_work_done(u32 session); /* of the task; last thing that `function` calls */

/* ---- hooks ---- */

struct tracepoint;
/* Tracepoint `name` of the kernel itself, NULL when it has none. Process context. */
struct tracepoint *etrace_tracepoint_find(const char *name);

/*
 * Register all probes; those that this kernel lacks are reported by etrace_hooks_missing(). Process
 * context. unregister returns after the last probe has returned (task_work may still be pending).
 */
int etrace_hooks_register(u32 options);
void etrace_hooks_unregister(void);
/* Name of the nth function that could not be probed, NULL after the last. */
const char *etrace_hooks_missing(unsigned int n);
/* Whether the function `symbol` is probed and probes fire, as far as is known. Any context. */
bool etrace_hooks_fire(const char *symbol);
/* From etrace_task_put(): free what hooks hung on the entry. Any context. */
void etrace_hooks_forget(struct etrace_task *entry);
/* When the module goes, after the last task_work: free the memory kept for task_work. */
void etrace_hooks_deinit(void);

#endif /* ETRACE_H */
