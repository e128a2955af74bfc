/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ETRACE_PRELOAD_EVENTS_H
#define ETRACE_PRELOAD_EVENTS_H

#include "process.h"

/* Print what a record tells, in the order of time. Frees it. */
void events_put(struct event *event);

/* A child of the collector ended. */
void events_put_end(pid_t pid, int wait_status);

/* The capture ends: what is known of the processes that are left. */
void events_settle(void);

/* The parent of a process while it is there, else 0. */
pid_t events_ask_parent(pid_t pid);

/*
 * Processes that ended and of which nobody learned how; that restricted their own calls; that began in
 * another PID namespace.
 */
u64 events_unknown_ends(void);
u64 events_confined(void);
u64 events_left(void);

#endif /* ETRACE_PRELOAD_EVENTS_H */
