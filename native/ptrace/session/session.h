/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a run; each is described at the head of its file. */
#ifndef ETRACE_PTRACE_SESSION_H
#define ETRACE_PTRACE_SESSION_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- front.c: the process that the user started, the parent of the tracer ---- */

/* This program's arguments, for a program that takes over. */
void front_set_arguments(char **arguments);

/* In the tracer, before the command has run: the front has etrace-preload take over. */
void front_ask_substitute(void);

/*
 * Split in two. In the tracer this returns; the front waits for its result, hands signals on, and
 * ends as the command did.
 */
void front_split(void);

/* In the tracer: the command's process, to hand signals to; 0 when it has ended. */
void front_set_root(pid_t root);

/*
 * In the tracer: the command ended with this wait status, and the trace is complete. `stays`: the
 * tracer lives on for those that outlive the command.
 */
void front_finish(int wait_status, bool stays);

/* In the tracer: whether a signal asked for the end of the build. */
bool front_was_interrupted(void);

/* ---- command.c ---- */

/* Start the command, traced from before its first instruction. Ends the program when it cannot. */
pid_t command_start(void);

/*
 * The command's process ended. When that was before the command was executed, say why and return
 * the exit status this means; else 0.
 */
int command_failure(void);

/* Members of the stats: what was added to ASAN_OPTIONS and LSAN_OPTIONS of the command. */
void command_put_stats(FILE *file);

/* ---- loop.c ---- */

/* Signals of the tracer itself, and the clock that flushes the trace. */
void loop_init(void);

enum loop_end {
	LOOP_ALL_ENDED,
	LOOP_SURVIVORS, /* the command ended and others go on */
	LOOP_FRONT_GONE, /* the process that the user started was killed */
};

/*
 * Trace until every task has ended; without --wait-all no longer than a short grace after the
 * command did. Called once more it continues with the survivors, to their end.
 */
enum loop_end loop_run(pid_t root);

/* Wait status of the command, once it has ended. */
int loop_root_status(void);

/* Whether two signals asked to end the build. */
bool loop_was_killed(void);

#endif /* ETRACE_PTRACE_SESSION_H */
