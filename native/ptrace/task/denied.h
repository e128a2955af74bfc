/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_DENIED_H
#define ETRACE_PTRACE_DENIED_H

#include "task/task.h"

/* ptrace was refused to the tracer itself: say what forbids it and what else there is, and end. */
void denied_explain(const char *what, int error) __attribute__((noreturn));

/* ptrace was refused to a program of the build, because that is traced already. */
void denied_note(const struct task *task, long request);

/* Say at the end to whom; the same for the stats file, one text per program. */
void denied_report(void);
size_t denied_count(void);
const char *denied_text(size_t index);

#endif /* ETRACE_PTRACE_DENIED_H */
