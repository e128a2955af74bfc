/* SPDX-License-Identifier: GPL-2.0-only */
/* Untraced tasks pay nothing: ETRACE_OPTION_ISOLATE. */
#ifndef ETRACE_ISOLATE_H
#define ETRACE_ISOLATE_H

#include <linux/types.h>

/* Whether others watch system calls; before our own probes are set. Process context. */
bool etrace_isolate_possible(void);
/* The set holds the roots, the probes are there. */
void etrace_isolate_begin(void);
/* Before our probes go: what others have asked for meanwhile works again. */
void etrace_isolate_end(void);

#endif /* ETRACE_ISOLATE_H */
