/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of events give to the probes and to one another: a handler for each kind of system
 * call that is looked at when it returns, and functions for probes elsewhere. All are atomic.
 */
#ifndef ETRACE_HANDLERS_H
#define ETRACE_HANDLERS_H

#include <linux/kprobes.h>

#include "compat.h"
#include "task/entry.h"

struct files_struct;
struct linux_binprm;

/* ---- open.c ---- */
extern const struct etrace_handler etrace_open;
/* The exit of it, for a direct call. */
void etrace_exit_open(struct etrace_task *entry, const struct etrace_call *call);
/* Before the first open of a session. */
void etrace_opens_init(void);

/* ---- descriptor.c ---- */
extern const struct etrace_handler etrace_close_range;
extern const struct etrace_handler etrace_pipe;
extern const struct etrace_handler etrace_dup;
extern const struct etrace_handler etrace_fcntl;
void etrace_exit_close(struct etrace_task *entry, int fd, s64 result);
int etrace_on_close_range(struct kprobe *probe, struct pt_regs *regs);
int etrace_on_detach_fds(struct kprobe *probe, struct pt_regs *regs);
/*
 * Keep those of [first, last] that are open, with `on_exec` only those marked to be closed then.
 * Atomic, under rcu_read_lock(); counted when memory is short.
 */
void etrace_descriptors_keep(struct etrace_task *entry, const struct files_struct *files,
			     bool on_exec, u32 first, u32 last);

/*
 * Whether `fd`, the result of a call that takes the lowest free descriptor, is new. A filter can
 * make up 0 only; who takes 0 leaves 1 as the first to try. With others who use the table nobody
 * can say: then it is.
 */
bool etrace_zero_is_new(void);
static __always_inline bool etrace_is_new(s64 fd)
{
	return likely(fd) || etrace_zero_is_new();
}

/* ---- rename.c, mount.c ---- */
extern const struct etrace_handler etrace_pair;
extern const struct etrace_handler etrace_symlink;
extern const struct etrace_handler etrace_mount;
extern const struct etrace_handler etrace_umount;
int etrace_on_path_rename(struct kprobe *probe, struct pt_regs *regs);
int etrace_on_path_link(struct kprobe *probe, struct pt_regs *regs);
int etrace_on_path_symlink(struct kprobe *probe, struct pt_regs *regs);
int etrace_on_sb_mount(struct kprobe *probe, struct pt_regs *regs);
int etrace_on_sb_umount(struct kprobe *probe, struct pt_regs *regs);

/* ---- process.c ---- */
extern const struct etrace_handler etrace_clone;
void etrace_on_fork(void *data, struct task_struct *parent, struct task_struct *child);
void etrace_on_rename(void *data, struct task_struct *task, const char *comm);
ETRACE_EXIT_PROBE(etrace_on_exit);

/* ---- usage.c: what a process has used (decision 47) ---- */
/* When the module is loaded. */
void etrace_usage_init(void);
/* False: this kernel does not let us read CPU time. */
bool etrace_usage_has_cpu(void);

/*
 * The current task ends, and its process with it: its Usage is of all. False for other threads, and
 * for a first thread that others outlive. Any context.
 */
bool etrace_usage_is_due(void);
/* The line, of the current task's process. Any context. */
void etrace_put_usage(struct etrace_stream *stream, struct etrace_task *entry);
/*
 * The current thread ends, and no Usage is due. What it ran since the last tick is counted, so that
 * it leaves all of its CPU time to the process. Any context.
 */
void etrace_usage_end_thread(void);
/* Before the current task gives up its memory. Any context. */
void etrace_usage_note_memory(struct etrace_task *entry);
/* Before Linux 6.16. */
int etrace_on_exit_signals(struct kprobe *probe, struct pt_regs *regs);

/* ---- exec.c ---- */
int etrace_on_close_on_exec(struct kprobe *probe, struct pt_regs *regs);
void etrace_on_exec(void *data, struct task_struct *task, pid_t old_pid,
		    struct linux_binprm *bprm);

#endif /* ETRACE_HANDLERS_H */
