/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_DESCRIPTOR_H
#define ETRACE_PTRACE_DESCRIPTOR_H

#include "task.h"

enum descriptor_state { DESCRIPTOR_OPEN, DESCRIPTOR_FREE, DESCRIPTOR_UNKNOWN };

/* What /proc says of a descriptor; unknown where it hides what the task may not read. */
enum descriptor_state descriptor_look_up(const struct task *task, int fd);

#endif /* ETRACE_PTRACE_DESCRIPTOR_H */
