/* SPDX-License-Identifier: GPL-2.0-only */
/* What the core uses of scratch.c besides etrace.h. */
#ifndef ETRACE_SCRATCH_H
#define ETRACE_SCRATCH_H

struct etrace_stream;

int etrace_scratch_init(void);
void etrace_scratch_deinit(void);

/* The stream of etrace_emit(), apart from the scratch that its caller holds strings in. */
struct etrace_stream *etrace_emit_stream_get(void);
void etrace_emit_stream_put(void);

#endif /* ETRACE_SCRATCH_H */
