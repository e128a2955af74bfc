/* SPDX-License-Identifier: GPL-2.0-only */
/* The running session, for all parts: its number, options, counters and notices. */
#ifndef ETRACE_STATE_H
#define ETRACE_STATE_H

#include <linux/percpu.h>
#include <linux/types.h>

#include "etrace/control.h"

extern u32 etrace_options; /* ETRACE_OPTION_* */
extern u32 etrace_session; /* its number; 0 when none runs */

/* Counters are per CPU: any context. */
struct etrace_counters {
	u64 n[ETRACE_N_COUNTERS];
};

extern struct etrace_counters __percpu *etrace_counters;

static inline void etrace_count(enum etrace_counter counter)
{
	this_cpu_inc(etrace_counters->n[counter]);
}

static inline void etrace_count_n(enum etrace_counter counter, u64 n)
{
	this_cpu_add(etrace_counters->n[counter], n);
}

/* When the module is loaded and unloaded. */
int etrace_state_init(void);
void etrace_state_deinit(void);

/* A session begins. Process context. */
void etrace_counters_reset(void);
/* Add what all CPUs have counted to `sums` of ETRACE_N_COUNTERS. Any context. */
void etrace_counters_sum(u64 *sums);

/* ---- notices: raised in any context, sent from a workqueue ---- */

/* Set the function that sends notices; before the first session. Process context. */
void etrace_notice_init(void (*sender)(u32 session, enum etrace_notice notice));
/* Send `notice` of the running session from a workqueue. Any context, locks held or not. */
void etrace_notice(enum etrace_notice notice);
/* ETRACE_NOTICE_LOSS, once a session. Any context. */
void etrace_notice_loss(void);
/* A new session: no notice has been sent yet. Process context. */
void etrace_notice_reset(u32 session);
/* Send waiting notices now. Process context. */
void etrace_notice_flush(void);

#endif /* ETRACE_STATE_H */
