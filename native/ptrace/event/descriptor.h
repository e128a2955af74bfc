/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_DESCRIPTOR_H
#define ETRACE_PTRACE_DESCRIPTOR_H

#include "task/task.h"

enum descriptor_state { DESCRIPTOR_OPEN, DESCRIPTOR_FREE, DESCRIPTOR_UNKNOWN };

/* Facts from /proc about a descriptor; unknown where /proc hides them. */
enum descriptor_state descriptor_look_up(const struct task *task, int fd);

#endif /* ETRACE_PTRACE_DESCRIPTOR_H */
