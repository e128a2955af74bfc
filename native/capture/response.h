/* SPDX-License-Identifier: Apache-2.0 */
/* Response files of compilers and linkers, read while their commands run (docs/compilations.md). */
#ifndef ETRACE_CAPTURE_RESPONSE_H
#define ETRACE_CAPTURE_RESPONSE_H

#include <stdbool.h>
#include <sys/types.h>

#include "etrace_format.h"

/*
 * A program was loaded: have the files read that its arguments name. Waits a limited time.
 * `is_elsewhere`: the task has another root directory or mount namespace than this process.
 */
void response_add(s64 upid, pid_t tid, const struct etrace_text *arguments, size_t n, const char *cwd,
		  bool is_elsewhere);

/* Write the file beside the trace, when there is anything to write. Nothing is read from here on. */
void response_put(void);

#endif /* ETRACE_CAPTURE_RESPONSE_H */
