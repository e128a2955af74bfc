/* SPDX-License-Identifier: Apache-2.0 */
/* System calls from the page at a fixed address that a tracer's filter lets pass. */
#ifndef ETRACE_PRELOAD_FAST_H
#define ETRACE_PRELOAD_FAST_H

#include "system.h"

/* Map the page; false where that is not possible, then there are no such calls. */
bool fast_map(void);

long fast_call(long n, long a, long b, long c, long d);

/* Whether the tracer knows this process by the same number. */
bool fast_knows(int pid);

#endif /* ETRACE_PRELOAD_FAST_H */
