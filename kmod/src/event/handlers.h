/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of events give to the probes: a handler for each kind of system call that is
 * looked at when it returns, and functions for probes elsewhere. All are atomic.
 */
#ifndef ETRACE_HANDLERS_H
#define ETRACE_HANDLERS_H

#include <linux/kprobes.h>

#include "compat.h"
#include "task/entry.h"

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

/* ---- rename.c, symlink.c, mount.c ---- */
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

/* ---- usage.c, before Linux 6.16 ---- */
int etrace_on_exit_signals(struct kprobe *probe, struct pt_regs *regs);

/* ---- exec.c ---- */
int etrace_on_close_on_exec(struct kprobe *probe, struct pt_regs *regs);
void etrace_on_exec(void *data, struct task_struct *task, pid_t old_pid,
		    struct linux_binprm *bprm);

#endif /* ETRACE_HANDLERS_H */
