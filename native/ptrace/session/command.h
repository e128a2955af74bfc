/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_COMMAND_H
#define ETRACE_PTRACE_COMMAND_H

#include <sys/types.h>

/* Start the command, traced from before its first instruction. Ends the program when it cannot. */
pid_t command_start(void);

/*
 * The command's process ended. When that was before the command was executed, say why and return
 * the exit status this means; else 0.
 */
int command_failure(void);

/* What was added to ASAN_OPTIONS and LSAN_OPTIONS of the command; "" when the user had it set. */
const char *command_asan_added(void);
const char *command_lsan_added(void);

#endif /* ETRACE_PTRACE_COMMAND_H */
