/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's tracepoints by name. */
#ifndef ETRACE_TRACEPOINT_H
#define ETRACE_TRACEPOINT_H

struct tracepoint;

/* Tracepoint `name` of the kernel itself, NULL when it has none. Process context. */
struct tracepoint *etrace_tracepoint_find(const char *name);

#endif /* ETRACE_TRACEPOINT_H */
