/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_CAPTURE_SIGNALS_H
#define ETRACE_CAPTURE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Note what the build is to find. Call this before any other. */
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
 * the tracing must not die of that. Faults and SIGCHLD keep their dispositions.
 */
void signals_ignore_all(void);

/* `handler` may be SIG_IGN or SIG_DFL. System calls are interrupted, not restarted. */
void signals_set(int signal, void (*handler)(int signal));
void signals_set_info(int signal, void (*handler)(int signal, siginfo_t *info, void *context));

/*
 * SIGCHLD for a tracer: not ignored, or no end would be reported; and no signal for a stop, which
 * wait() reports anyway.
 */
void signals_set_child_default(void);

/* End as the process that has this wait status ended. */
void signals_end_like(int wait_status) __attribute__((noreturn));

#endif /* ETRACE_CAPTURE_SIGNALS_H */
