/* SPDX-License-Identifier: Apache-2.0 */
/* The build as child processes: it is started, gets signals, is waited for. */
#ifndef ETRACE_PRELOAD_SUPERVISE_H
#define ETRACE_PRELOAD_SUPERVISE_H

#include <stdbool.h>

/* Start the command with the library. Returns 0, or the exit status when it cannot be started. */
int supervise_start(void);

/* Until the command and, for a moment or with --wait-all for ever, what it left have ended. */
void supervise_run(void);

/* The wait status of the command. */
int supervise_status(void);

/* Whether a signal asked for the end of the build. */
bool supervise_was_interrupted(void);

#endif /* ETRACE_PRELOAD_SUPERVISE_H */
