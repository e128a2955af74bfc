/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that continues is woken on the tracer's own core.
 *
 * The kernel wakes it on an idle core if there is one, and the tracer on another one at its next
 * stop: two interrupts between cores for each stop, which cost more than the stop itself. ptrace has
 * no wake-up that says better, so the task is bound to the tracer's core for the moment in which it
 * is woken. What it was bound to before is put back at once, but the task may run first. So the
 * calls that ask for the cores or set them stop, a child's cores are put right before it runs, and
 * a task that opens a `status` of /proc is bound no more: no program sees the difference.
 */
#ifndef ETRACE_PTRACE_CORE_H
#define ETRACE_PTRACE_CORE_H

#include "task/task.h"

/* Let a stopped task go on, to its next stop; the exit of its call is one if that is waited for. */
void core_resume(const struct task *task, int signal);

/* A child that was made just after its parent had been woken has the parent's binding. */
void core_unbind_child(const struct task *parent, const struct task *child);

#endif /* ETRACE_PTRACE_CORE_H */
