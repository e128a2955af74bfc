/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_SIGNALS_H
#define ETRACE_PTRACE_SIGNALS_H

#include <stdbool.h>

/* What the build has to find as it would without the tracer. Call first of all. */
void signals_save(void);

/* In the command's process, right before it executes. */
void signals_restore(void);

/*
 * From the fork of the front until each process has its dispositions: a signal that comes earlier
 * waits. So does one for the command until signals_restore().
 */
void signals_hold(void);
void signals_release(void);

bool signals_was_ignored(int signal);

/*
 * The build may signal its whole process group (`kill -USR1 0`): whoever is in it only because of
 * the tracing must not die of that. Faults and SIGCHLD stay as they are.
 */
void signals_ignore_all(void);

/* `handler` may be SIG_IGN or SIG_DFL. System calls are interrupted, not restarted. */
void signals_set(int signal, void (*handler)(int signal));

/*
 * SIGCHLD as a tracer needs it: not ignored, since no end would be reported then; and without a
 * signal for each stop, of which wait() tells anyway.
 */
void signals_set_child_default(void);

/* End as the process that has this wait status ended. */
void signals_end_like(int wait_status) __attribute__((noreturn));

#endif /* ETRACE_PTRACE_SIGNALS_H */
