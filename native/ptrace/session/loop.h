/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_LOOP_H
#define ETRACE_PTRACE_LOOP_H

#include <stdbool.h>
#include <sys/types.h>

/* Signals of the tracer itself, and the clock that flushes the trace. */
void loop_init(void);

enum loop_end {
	LOOP_ALL_ENDED,
	LOOP_SURVIVORS, /* the command ended and others go on */
	LOOP_FRONT_GONE, /* the process that the user started was killed */
};

/*
 * Trace until every task has ended; without --wait-all no longer than a short grace after the
 * command did. Called once more it goes on with the survivors, to their end.
 */
enum loop_end loop_run(pid_t root);

/* Wait status of the command, once it has ended. */
int loop_root_status(void);

/* Whether two signals asked to end the build. */
bool loop_was_killed(void);

#endif /* ETRACE_PTRACE_LOOP_H */
