/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PTRACE_ENVIRONMENT_H
#define ETRACE_PTRACE_ENVIRONMENT_H

#include "etrace_format.h"

/* A program was started with these variables. */
void environment_add(s64 upid, const struct etrace_text *variables, size_t n);

/* Print every variable with the processes that had it: once, at the end of the trace. */
void environment_put(void);

#endif /* ETRACE_PTRACE_ENVIRONMENT_H */
