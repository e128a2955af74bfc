/* SPDX-License-Identifier: Apache-2.0 */
/* What processes used, for the Usage lines. See docs/decisions/0047-usage.md. */
#ifndef ETRACE_PTRACE_USAGE_H
#define ETRACE_PTRACE_USAGE_H

#include "task/task.h"

/* A thread stands at its end (PTRACE_EVENT_EXIT): its memory is still there. */
void usage_take(struct task *task);

/* Print what the process has used, at an exec; `time_ns` is the New_proc's. */
void usage_put_exec(struct task *task, u64 time_ns);

/* A thread goes on as the leader: the sums of the process are its own now. */
void usage_move(struct task *leader, struct task *thread);

/* Print what the process of this leader used, if it was seen ending. */
void usage_put_end(struct task *task, u64 time_ns);

#endif /* ETRACE_PTRACE_USAGE_H */
