/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of a stopped task that PTRACE_GET_SYSCALL_INFO does not tell, or that must be changed. */
#ifndef ETRACE_PTRACE_REGISTERS_H
#define ETRACE_PTRACE_REGISTERS_H

#include "task/task.h"

/* The result of the call that the task has made or is about to return from. */
long registers_result(const struct task *task);

/* Whether the call that a task stands in is fork or vfork, and no clone. */
bool registers_of_fork(const struct task *task);

/* Change the first argument of the call that is about to be made. */
void registers_set_argument(const struct task *task, u64 value);

/* Put it back when the call has been made, where the program would see that it was changed. */
void registers_restore_argument(const struct task *task, u64 value);

#endif /* ETRACE_PTRACE_REGISTERS_H */
