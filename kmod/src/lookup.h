/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions and tracepoints of the kernel that it does not export (decision 29). */
#ifndef ETRACE_LOOKUP_H
#define ETRACE_LOOKUP_H

/*
 * The address of a function, for static_call_update(), or NULL. The kernel seals functions whose
 * address it never takes: calling one by a pointer would trap on a processor with IBT. A static
 * call is patched to a direct one. Process context, when the module is loaded.
 */
void *etrace_lookup(const char *name);

struct tracepoint;

/* Tracepoint `name` of the kernel itself, NULL when it has none. Process context. */
struct tracepoint *etrace_tracepoint_find(const char *name);

#endif /* ETRACE_LOOKUP_H */
