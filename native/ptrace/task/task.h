/* SPDX-License-Identifier: Apache-2.0 */
/* The traced tasks (processes and threads) and their state. */
#ifndef ETRACE_PTRACE_TASK_H
#define ETRACE_PTRACE_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "etrace_format.h"

#include "capture/fd_table.h"
#include "task/calls.h"

#define N_SYSCALL_ARGS 6
#define TASK_NAME_MAX 15 /* bytes of a thread name, TASK_COMM_LEN without its null byte */

/* Root and working directory; shared by tasks made with CLONE_FS, so cached once for all. */
struct fs_state {
	unsigned int refs;
	bool foreign; /* its mount namespace is not the tracer's */
	u64 generation; /* of the cached paths; differs from path_generation when stale */
	char *root; /* as the tracer sees it; "" means "/" */
	char *cwd; /* inside that root */
};

/* What a rename, link, symlink or mount found before it ran: it may be gone afterwards. */
struct names {
	char *from; /* source; NULL when the call has none */
	char *to; /* destination, link or mount point */
	char *type; /* of the file system to mount, or NULL */
	bool from_exists;
	bool from_is_directory;
	bool is_unresolved; /* a directory of them has no path that can be read */
	char *given; /* the strings of the call at its entry, one after the other */
	size_t n_given;
};

/* The members of struct open_how that the trace has. */
struct open_flags {
	u64 flags;
	u64 mode;
};

/* What a process has used, in the order of the event Usage; -1: not known. */
struct usage {
	s64 user;
	s64 system;
	s64 max_rss;
	s64 rchar;
	s64 wchar;
	s64 voluntary;
	s64 forced;
};

enum task_state {
	TASK_RUNNING,
	TASK_PARKED, /* stopped before its parent's fork was seen: must not run yet */
	TASK_EXPECTED, /* named by its parent, its first stop has not come yet */
	TASK_ENDED_EARLY, /* ended before its parent's fork was seen: kept for that */
};

struct lookup;

struct task {
	struct task *next; /* in its bucket */
	pid_t tid; /* as the tracer sees it */
	pid_t tgid;
	s64 upid;
	enum task_state state;
	int wait_status; /* of the stop or end that waits for the parent's fork */
	u64 waits_since; /* when that stop or end came */
	u32 cpu; /* where it was seen last */
	bool shows_cores; /* it reads files of /proc that say where it may run */

	struct lookup *lookups; /* names that its stop has to do with: see lookup.h */
	struct rights *rights; /* at this stop, or NULL */
	void (*again)(struct task *task); /* what handles the stop when they are looked up */

	enum call call; /* waits for the exit of this call */
	u64 args[N_SYSCALL_ARGS];
	struct names names;
	struct open_flags how; /* of an openat2 at its entry */

	enum call clone; /* clone or clone3 was entered, and has not shown a child yet */
	u64 clone_flags;
	u64 clone_time;
	u64 clone_flags_at; /* address of the clone3 flags that lost CLONE_UNTRACED, or 0 */
	bool argument_changed; /* the first one of a clone, in its register */
	u64 argument; /* its original value */
	char *covered; /* what lay below the stack where clone3's arguments are now */
	u64 covered_at;
	size_t n_covered;

	bool is_watched; /* every call stops, for a seccomp filter may outrank the tracer's */
	bool is_entered; /* the call it is in has been looked at */

	u64 rseq; /* address of its restartable sequence area, or 0 */
	unsigned int rseq_reads; /* reads of memory without it */
	unsigned int rseq_ask_at; /* the kernel is asked for it at this one */

	struct usage usage; /* of the process, in its leader: what ended threads leave */
	s64 n_stops; /* for the tracer */
	bool has_executed;
	bool borrows_memory; /* its parent's, until it executes: of vfork() */
	bool is_ending; /* a leader that was seen at its end: its usage is known */

	char *exec_path; /* the directory of a pending execveat, or NULL */

	bool is_narrow; /* the words of its program have 32 bits */
	struct written *written; /* by the process since its last execution, in its leader; or NULL */

	struct fd_table *fds;
	struct fs_state *fs;
};

struct task *task_find(pid_t tid);
struct task *task_create(pid_t tid);

/* Free a task that has no look-up under way. */
void task_remove(struct task *task);

/* Give a task its identity: a upid, and tables shared with or copied from `parent`, if any. */
void task_begin(struct task *task, const struct task *parent, u64 clone_flags);

size_t task_count(void);

/* Tasks that are not the leader of their process. */
size_t task_thread_count(void);

/* Those still waiting for their parent, stopped or ended. */
size_t task_parked_count(void);
void task_set_state(struct task *task, enum task_state state);

/* A thread that executes takes over the leader's number. */
void task_renumber(struct task *task, pid_t tid);

void task_for_each(void (*visit)(struct task *task, void *context), void *context);

/* Whether every call of the task stops, because its descriptor 1 leads to standard error. */
bool task_sees_writes(const struct task *task);

/* Give up sharing a table with other tasks. */
void task_unshare_fds(struct task *task);
void task_unshare_fs(struct task *task);

void names_clear(struct names *names);

void fs_drop(struct fs_state *fs);
struct fs_state *fs_copy(const struct fs_state *from);
struct fs_state *fs_create(void);

/* ---- how a task continues ----
 *
 * It is woken on the tracer's own core. The kernel would wake it on an idle core if there is one,
 * and the tracer on another at its next stop: two interrupts between cores for each stop, which cost
 * more than the stop itself. ptrace has no wake-up that avoids this, so the task is bound to the
 * tracer's core while it is woken. Its former binding is restored at once, but the task may run
 * first. So calls that ask for the cores or set them stop, a child's cores are restored before it
 * runs, and a task that opens a `status` of /proc is bound no more: no program sees the difference.
 */

/* Let a stopped task go on, to its next stop; the exit of its call is one if that is waited for. */
void core_resume(const struct task *task, int signal);

/* A child that was made just after its parent had been woken has the parent's binding. */
void core_unbind_child(const struct task *parent, const struct task *child);

/* ---- filter.c ---- */

/*
 * Install the filter in the calling process, for good and for all its descendants. Without a tracer
 * every call it selects then fails with ENOSYS. Returns 0 or -errno.
 */
int filter_install(void);

/*
 * What the filter says of a call: its kind, or CALL_NONE where it does not stop. With `sees_writes`
 * those to descriptor 1 do.
 */
enum call filter_classify(uint32_t audit_arch, uint64_t number, const uint64_t *args,
			  bool sees_writes);

/* ---- denied.c ---- */

/* ptrace was refused to the tracer itself: say what forbids it and what else there is, and end. */
void denied_explain(const char *what, int error) __attribute__((noreturn));

/* ptrace was refused to a program of the build, because that is traced already. */
void denied_note(const struct task *task, long request);

/* Warn of that at the end, once for each program. */
void denied_report(void);

#endif /* ETRACE_PTRACE_TASK_H */
