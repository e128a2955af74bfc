/* SPDX-License-Identifier: Apache-2.0 */
/* Response files of compilers and linkers, read while their commands run (docs/compilations.md). */
#ifndef ETRACE_CAPTURE_RESPONSE_H
#define ETRACE_CAPTURE_RESPONSE_H

#include <stdbool.h>
#include <sys/types.h>

#include "capture/rights.h"
#include "etrace_format.h"

/* Whether there may be something to read for a program with these arguments. */
bool response_is_wanted(const struct etrace_text *arguments, size_t n);

/*
 * A program was loaded and response_is_wanted(): have the files read that its arguments name. Waits a
 * limited time.
 * `rights`: those of the task at this moment; NULL: they are unknown, and nothing is read. `root`: a
 * descriptor of its root directory, or -1 when names lead where they do for this process.
 */
void response_add(s64 upid, const struct etrace_text *arguments, size_t n, const char *cwd,
		  const struct rights *rights, int root);

/* Write the file beside the trace, when there is anything to write. Nothing is read from here on. */
void response_put(void);

#endif /* ETRACE_CAPTURE_RESPONSE_H */
