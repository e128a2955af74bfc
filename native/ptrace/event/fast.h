/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that a preloaded library makes without a stop, and tells (--fast). */
#ifndef ETRACE_PTRACE_FAST_H
#define ETRACE_PTRACE_FAST_H

#include "task/task.h"

/* Before the command starts. */
void fast_start(void);

/* In the command's process: the variables that the library needs. */
void fast_set_environment(void);

/* Print what a task has told since its last stop; `has_left`: this program of it will tell no more. */
void fast_take(const struct task *task, bool has_left);

/* Print what all tasks have told, so that there is room. */
void fast_take_all(void);

/* Nothing more will be printed. */
void fast_stop(void);

#endif /* ETRACE_PTRACE_FAST_H */
