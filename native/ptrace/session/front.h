/* SPDX-License-Identifier: Apache-2.0 */
/* The process that the user started, and the tracer behind it. */
#ifndef ETRACE_PTRACE_FRONT_H
#define ETRACE_PTRACE_FRONT_H

#include <stdbool.h>
#include <sys/types.h>

/* This program's arguments, for a program that takes over. */
void front_set_arguments(char **arguments);

/* In the tracer, before the command has run: the front has etrace-preload take over. */
void front_ask_substitute(void);

/*
 * Split in two. In the tracer this returns; the front waits for the tracer's word, hands signals
 * on, and ends as the command did.
 */
void front_split(void);

/* In the tracer: the command's process, to hand signals to. 0 when there is none any more. */
void front_set_root(pid_t root);

/*
 * In the tracer: the command ended with this wait status, and the trace is complete. `stays` says
 * that the tracer lives on for those that outlive the command.
 */
void front_finish(int wait_status, bool stays);

/* In the tracer: whether a signal asked for the end of the build. */
bool front_was_interrupted(void);

#endif /* ETRACE_PTRACE_FRONT_H */
