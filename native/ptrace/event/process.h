/* SPDX-License-Identifier: Apache-2.0 */
/* Life of the traced tasks: made, executing, ended. */
#ifndef ETRACE_PTRACE_PROCESS_H
#define ETRACE_PTRACE_PROCESS_H

#include "task/task.h"

/* A child of `parent` appeared: print the parent's call. */
void process_put_fork(struct task *parent, struct task *child);

/* Flags of the call at whose ptrace event `parent` stands; fork and vfork have theirs implied. */
u64 process_clone_flags(struct task *parent, int event);

/* A clone ended without a child: print that it failed. */
void process_settle_clone(struct task *task);

/* The task ended with this wait status. */
void process_put_exit(struct task *task, int wait_status);

/* Note the descriptors that a task has from before it was traced. */
void process_list_descriptors(struct task *task);

/* exec.c: a new program was loaded and has not run yet. */
void exec_put(struct task *task);

/* Restore the registers of a clone that the tracer changed. */
void process_restore_argument(struct task *task);

#endif /* ETRACE_PTRACE_PROCESS_H */
