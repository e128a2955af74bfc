/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory for the probe that runs on a CPU: paths and streams are too long for the stack. */
#ifndef ETRACE_SCRATCH_H
#define ETRACE_SCRATCH_H

#include <linux/limits.h>

#include "record/stream.h"

/* When the module is loaded and unloaded. */
int etrace_scratch_init(void);
void etrace_scratch_deinit(void);

/*
 * Per-CPU scratch: disables preemption until put. One user at a time on a CPU (task context only).
 * `path` and `other` take a path of PATH_MAX and its directory; `stream` is for streams that do
 * not sleep.
 */
#define ETRACE_PATH_BYTES (PATH_MAX + 16) /* with the kernel's " (deleted)" */
struct etrace_scratch {
	char path[ETRACE_PATH_BYTES];
	char other[2 * PATH_MAX];
	char third[ETRACE_PATH_BYTES];
	struct etrace_stream stream;
};

struct etrace_scratch *etrace_scratch_get(void);
void etrace_scratch_put(struct etrace_scratch *scratch);

/* The stream of etrace_emit(), apart from the scratch that its caller holds strings in. */
struct etrace_stream *etrace_emit_stream_get(void);
void etrace_emit_stream_put(void);

#endif /* ETRACE_SCRATCH_H */
