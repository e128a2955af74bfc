/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of hooks share: probes, the call at hand, strings of paths, deferred work. */
#ifndef ETRACE_HOOKS_H
#define ETRACE_HOOKS_H

#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/seccomp.h>

#include "etrace.h"
#include "path.h"
#include "syscall_table.h"

struct linux_binprm;

/* ---- syscall.c ---- */

/* Probe of the raw tracepoint sys_exit. */
void etrace_on_sys_exit(void *data, struct pt_regs *regs, long result);

/* Arguments of the call that `current` stands in. */
void etrace_read_arguments(struct pt_regs *regs, u64 args[6]);

/*
 * The traced task that `current` is, if the call it stands in is one of kinds [first, last], for
 * kprobes inside calls. Under rcu_read_lock().
 */
struct etrace_task *etrace_task_in_call(enum etrace_call_kind first, enum etrace_call_kind last);

/*
 * A signal came, and the kernel begins the call again: it has not ended. Where the signal's handler
 * makes it fail with EINTR instead, its lines of failure are left out.
 */
bool etrace_call_restarts(s64 result);

/*
 * A seccomp filter may answer a call with 0 (SECCOMP_RET_ERRNO), its listener with any result: the
 * call looks as if it had succeeded and was never made. Where this is true, what the call should
 * have done is looked for.
 */
static __always_inline bool etrace_may_be_made_up(void)
{
	return unlikely(seccomp_mode(&current->seccomp) == SECCOMP_MODE_FILTER);
}

/*
 * One handler for each kind of call. At the exit they are atomic. `entry` is of current; what the
 * call looks like is in `call`.
 */
void etrace_exit_open(struct etrace_task *entry, const struct etrace_call *call);
void etrace_exit_close(struct etrace_task *entry, int fd, s64 result);
void etrace_exit_close_range(struct etrace_task *entry, const struct etrace_call *call);
void etrace_exit_pipe(struct etrace_task *entry, const struct etrace_call *call);
void etrace_exit_dup(struct etrace_task *entry, const struct etrace_call *call);
void etrace_exit_fcntl(struct etrace_task *entry, const struct etrace_call *call);
void etrace_exit_pair(struct etrace_task *entry, const struct etrace_call *call);
void etrace_exit_symlink(struct etrace_task *entry, const struct etrace_call *call);
void etrace_exit_clone(struct etrace_task *entry, const struct etrace_call *call);
void etrace_exit_mount(struct etrace_task *entry, const struct etrace_call *call);
void etrace_exit_umount(struct etrace_task *entry, const struct etrace_call *call);

/* Before the first open of a session. */
void etrace_opens_init(void);
/* Forget which files were opened: a new program begins, or the task has ended. */
void etrace_opens_free(struct etrace_task *entry);

/* ---- deferred.c ---- */

/* Look at the call again where it may sleep, before the task returns to user space. Atomic. */
void etrace_defer(struct etrace_task *entry, const struct etrace_call *call);
/* Only make the reserve of memory whole then: storms of forks must not outrun it. Atomic. */
void etrace_defer_refill(struct etrace_task *entry);

/* The second look. May sleep; `space` is this work's own. */
void etrace_work_open(struct etrace_task *entry, const struct etrace_call *call,
		      struct etrace_scratch *space);
void etrace_work_close_range(struct etrace_task *entry, const struct etrace_call *call,
			     struct etrace_scratch *space);
void etrace_work_pair(struct etrace_task *entry, const struct etrace_call *call,
		      struct etrace_scratch *space);
void etrace_work_symlink(struct etrace_task *entry, const struct etrace_call *call,
			 struct etrace_scratch *space);
void etrace_work_mount(struct etrace_task *entry, const struct etrace_call *call,
		       struct etrace_scratch *space);
void etrace_work_umount(struct etrace_task *entry, const struct etrace_call *call,
			struct etrace_scratch *space);
void etrace_work_exec(struct etrace_task *entry, const struct etrace_call *call,
		      struct etrace_scratch *space);

/* ---- path.c, more in path.h ---- */

/* Copy bytes of the task's memory where it is present; 0 or -EFAULT. Atomic. */
int etrace_user_bytes(void *to, u64 address, size_t n);

/* etrace_user_path() in `buf` of ETRACE_PATH_BYTES; absent when it cannot be had. */
struct etrace_text etrace_given_path(int dirfd, u64 address, char *scratch, char *buf);

/*
 * The file that a path of the task leads to now: absolute, directories resolved, a symlink at its
 * end followed or not, in `buf` of ETRACE_PATH_BYTES. Where there is no such file but its directory
 * exists and `or_new` is set, the name it would have; else absent. `scratch` of 2 * PATH_MAX bytes
 * is used on the way. Sleeps.
 */
struct etrace_text etrace_resolve(int dirfd, u64 address, bool follow, bool or_new, char *scratch,
				  char *buf);

/* ---- walk.c ---- */

/*
 * Where `name` (absolute, or below the working directory) leads, a symlink at its end followed or
 * not, as far as the kernel's memory tells; the caller's to path_put(). -EAGAIN, counted: some part
 * of the way is not in memory. Uses `buf` of ETRACE_PATH_BYTES, which may not hold `name`. Waits
 * for no file system. Process context of the task.
 */
int etrace_walk(const char *name, bool follow, char *buf, struct path *path);
/* The same as text, in the same `buf`; absent when it leads to nothing that is known. */
struct etrace_text etrace_walk_text(const char *name, bool follow, char *buf);

/* ---- names.c, mount.c ---- */

/* Strings of a call that an LSM hook of the kernel saw; kept from there to the call's exit. */
struct etrace_names {
	u8 kind; /* of the call */
	struct etrace_text text[3]; /* in `bytes`; source or target string, destination, type */
	char bytes[];
};

/* Keep copies of three strings, any of them absent. Atomic; counted when memory is short. */
void etrace_names_keep(struct etrace_task *entry, enum etrace_call_kind kind,
		       const struct etrace_text *texts);
/* Whether a call that has succeeded was made: its hook `symbol` has seen it, or is not there. */
bool etrace_was_made(const struct etrace_task *entry, const char *symbol);
/* What was kept for this call, the caller's to kfree(); NULL when its hook was not reached. */
struct etrace_names *etrace_names_take(struct etrace_task *entry, enum etrace_call_kind kind);

void etrace_names_free(struct etrace_task *entry);

int etrace_on_path_rename(struct kprobe *probe, struct pt_regs *regs);
int etrace_on_path_link(struct kprobe *probe, struct pt_regs *regs);
int etrace_on_path_symlink(struct kprobe *probe, struct pt_regs *regs);
int etrace_on_sb_mount(struct kprobe *probe, struct pt_regs *regs);
int etrace_on_sb_umount(struct kprobe *probe, struct pt_regs *regs);

/* ---- descriptor.c ---- */

/*
 * Keep those of [first, last] that are open, with `on_exec` only those marked to be closed then.
 * Atomic, under rcu_read_lock(); counted when memory is short.
 */
void etrace_descriptors_keep(struct etrace_task *entry, const struct files_struct *files,
			     bool on_exec, u32 first, u32 last);
void etrace_descriptors_free(struct etrace_task *entry);

/*
 * Whether `fd`, the result of a call that takes the lowest free descriptor, is new. A filter can
 * make up 0 only; who takes 0 leaves 1 as the first to try. With others who use the table nobody
 * can tell: then it is.
 */
bool etrace_zero_is_new(void);
static __always_inline bool etrace_is_new(s64 fd)
{
	return likely(fd) || etrace_zero_is_new();
}

int etrace_on_close_range(struct kprobe *probe, struct pt_regs *regs);
int etrace_on_detach_fds(struct kprobe *probe, struct pt_regs *regs);

/* ---- process.c ---- */

void etrace_on_fork(void *data, struct task_struct *parent, struct task_struct *child);
void etrace_on_rename(void *data, struct task_struct *task, const char *comm);
ETRACE_EXIT_PROBE(etrace_on_exit);

/* ---- exec.c, exec_name.c ---- */

int etrace_on_close_on_exec(struct kprobe *probe, struct pt_regs *regs);
void etrace_on_exec(void *data, struct task_struct *task, pid_t old_pid,
		    struct linux_binprm *bprm);
void etrace_exec_free(struct etrace_task *entry);

/* The paths PI and PP; `path`, `third` and the first half of `other` of space hold them. Sleeps. */
void etrace_exec_names(const struct etrace_exec *exec, struct etrace_scratch *space,
		       struct etrace_text *interpreter, struct etrace_text *program);

/*
 * What a descriptor is, where `name` is one by a link of /proc, in `buf` of ETRACE_PATH_BYTES; else
 * absent.
 */
struct etrace_text etrace_descriptor_name(const char *name, char *buf);

#endif /* ETRACE_HOOKS_H */
