/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Response files: what `@FILE` on the command line of a compiler or linker held while it ran. Build
 * tools remove such files at once. They go to a file beside the trace (docs/compilations.md).
 */
#ifndef ETRACE_PTRACE_RESPONSE_H
#define ETRACE_PTRACE_RESPONSE_H

#include <stddef.h>

#include "task/task.h"

/* A program was loaded: have the files read that its arguments name. Waits for nothing. */
void response_add(const struct task *task, const struct etrace_text *arguments, size_t n,
		  const char *cwd, bool is_elsewhere);

/* Write the file beside the trace, when there is anything to write. Nothing is read from here on. */
void response_put(void);

#endif /* ETRACE_PTRACE_RESPONSE_H */
