/* SPDX-License-Identifier: GPL-2.0-only */
/* What a process has used -> Usage, before its New_proc and before its Exit (decision 47). */
#ifndef ETRACE_USAGE_H
#define ETRACE_USAGE_H

#include "task/entry.h"

/* When the module is loaded. */
void etrace_usage_init(void);
/* False: this kernel does not let us read CPU time. */
bool etrace_usage_has_cpu(void);

/*
 * The current task ends, and its process with it: its Usage tells all. False for other threads, and
 * for a first thread that others outlive. Any context.
 */
bool etrace_usage_is_due(void);
/* The line, of the current task's process. Any context. */
void etrace_put_usage(struct etrace_stream *stream, struct etrace_task *entry);
/*
 * The current thread ends, and no Usage is due. What it ran since the last tick is counted, so that
 * it leaves all of its CPU time to the process. Any context.
 */
void etrace_usage_end_thread(void);
/* Before the current task gives up its memory. Any context. */
void etrace_usage_note_memory(struct etrace_task *entry);

#endif /* ETRACE_USAGE_H */
